//! Short texts in fixed fields.

/// Puts a text into a fixed field, zero-filled; what does not fit is cut at a character.
pub fn encode<const N: usize>(text: &str) -> [u8; N] {
    let mut field = [0; N];
    let end = text.floor_char_boundary(N);
    field[..end].copy_from_slice(&text.as_bytes()[..end]);
    field
}

/// The text of a fixed field: up to the first zero byte, what is not UTF-8 replaced.
///
/// Control characters are kept: whoever shows the text to a person escapes them.
pub fn decode(field: &[u8]) -> String {
    let end = field.iter().position(|byte| *byte == 0).unwrap_or(field.len());
    String::from_utf8_lossy(&field[..end]).into_owned()
}
