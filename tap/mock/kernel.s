# What every kernel consists of here: some text and a word of data that it refers to.
        .option norelax
        .section .start, "ax", @progbits
        .globl  _start
_start: lui     a0, %hi(counter)
        addi    a0, a0, %lo(counter)
        call    count
        ret

        .text
        .globl  count
count:  .rept   256
        addi    a0, a0, 1
        .endr
        ret

        .data
        .globl  counter
counter: .word  1
