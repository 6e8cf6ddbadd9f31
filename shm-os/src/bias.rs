//! A lock that is biased to the thread that used it last.
//!
//! As long as one thread uses it, entering is a store and a load, leaving is a store: no atomic read-modify-write, which
//! on Intel waits until every store before it has left the core, and costs as much as an event does. The price is paid by
//! the thread that takes the bias away.
//!
//! ```text
//! owner, each time                        evictor, once
//! seat.inside = IN                        state: BIASED | seat -> HELD
//! light fence                             heavy fence (membarrier)
//! state is still BIASED | seat?           wait until seat.inside is OUT
//!   yes: it is in; later inside = OUT     it holds the lock
//!   no: inside = OUT, then as anybody
//! ```
//!
//! Each does a store, a fence and a load of what the other stores (Dekker's pattern): at least one of them sees the other.
//! Either the owner sees that its bias is gone, or the evictor sees that the owner is inside, and waits.
//!
//! - **A seat belongs to a thread**, never to a bias: an owner that was interrupted just before it stores IN may go on at
//!   any later time, and must not write what another owner relies on. Only its own thread writes `inside`, and the load
//!   that follows tells it whether the bias is, at that time, its own: no other thread can give it one.
//! - **A thread that has ended** leaves a seat that is OUT. A new thread may have its number, and with it seat and bias:
//!   everything that the old one did came before the new one was made.
//! - **A signal handler** that interrupts its own thread inside, or about to learn that it is not, waits for ever: as with
//!   any lock, handlers must not enter it. They may try to ([`State::try_enter`]), which finds it busy then.
//! - **Who gets the bias**: the first thread, and later one that has taken the lock so often in a row that a fence is
//!   cheaper ([`State::next`]). Each eviction doubles that number: threads that take turns keep an ordinary lock.
//! - **If the kernel refuses the fence**, nobody ever gets a bias. If it stops to allow it (a sandbox that was set up
//!   meanwhile), the evictor waits for much longer than a store stays in a core, and nobody gets one any more. A sandbox
//!   that kills for it, or that says it was done, is not one to report from.

/// The page was wiped: this process is a child that has not used the lock yet.
pub(crate) const WIPED: u32 = 0;
/// Nobody has it.
pub(crate) const FREE: u32 = 1;
/// Somebody has it.
pub(crate) const HELD: u32 = 2;
/// What it guards cannot be made in this process.
pub(crate) const NO_VALUE: u32 = 3;
/// What it guarded is gone, for good.
pub(crate) const ENDED: u32 = 4;
/// This and the number of a seat: the thread of that seat may enter.
pub(crate) const BIASED: u32 = 1 << 16;

const OUT: u32 = 0;
const IN: u32 = 1;

/// An atomic integer, as far as the lock needs it. Generic so that loom runs this code.
pub(crate) trait Cell<T> {
    fn load(&self) -> T;
    fn load_acquire(&self) -> T;
    fn store(&self, value: T);
    fn store_release(&self, value: T);
}

/// What the lock is made of.
pub(crate) trait Platform: Sized {
    type U32: Cell<u32>;
    type U64: Cell<u64>;
    /// How long somebody has waited.
    type Patience: Default;

    /// How often in a row a thread has to take the lock before it gets a bias, after the first eviction. A fence that
    /// interrupts another core takes as long as a hundred to a thousand exchanges do.
    const FIRST_STREAK: u32 = 1 << 10;
    /// The same, after many.
    const LONGEST_STREAK: u32 = 1 << 16;

    /// Replaces `from` by `to`: acquires what was released with `from`. `false` if it was something else.
    fn replace(word: &Self::U32, from: u32, to: u32) -> bool;
    /// Counts a thread that is about to sleep (1) or no longer sleeps (-1).
    fn count(sleepers: &Self::U32, change: i32);
    /// See the [module documentation](self).
    fn light_fence();
    /// As above; `false` if the kernel refuses.
    fn heavy_fence() -> bool;
    /// Waits for longer than a store takes to be seen by all.
    fn wait_for_stores();
    /// Lets others run before the caller looks again; `false` if it has waited so long that it should sleep.
    fn pause(patience: &mut Self::Patience) -> bool;
    /// Sleeps until woken, for a while, or not at all if `word` is not `value`.
    fn sleep(word: &Self::U32, value: u32);
    /// Wakes one that sleeps on this word.
    fn wake(word: &Self::U32);
}

/// The lock. All zero is a lock in a forked child.
pub(crate) struct State<P: Platform, const SEATS: usize> {
    word: P::U32,
    sleepers: P::U32,
    /// Whether there are heavy fences.
    biasable: P::U32,
    // The following are changed only by a thread that has the lock.
    /// Seats with a thread.
    taken: P::U32,
    /// Who had the lock last, how often in a row, and how often it takes to get a bias.
    last: P::U64,
    streak: P::U32,
    needed: P::U32,
    seats: [Seat<P>; SEATS],
}

/// A thread's own place.
struct Seat<P: Platform> {
    thread: P::U64,
    inside: P::U32,
}

/// Somebody has the lock until this is dropped.
#[must_use]
pub(crate) struct Hold<'a, P: Platform> {
    /// What is stored when it is dropped, and where.
    word: &'a P::U32,
    pub(crate) to: u32,
    sleepers: &'a P::U32,
}

impl<P: Platform, const SEATS: usize> State<P, SEATS> {
    #[cfg(test)]
    pub(crate) fn new(u32: impl Fn() -> P::U32, u64: impl Fn() -> P::U64) -> State<P, SEATS> {
        State {
            word: u32(),
            sleepers: u32(),
            biasable: u32(),
            taken: u32(),
            last: u64(),
            streak: u32(),
            needed: u32(),
            seats: std::array::from_fn(|_| Seat { thread: u64(), inside: u32() }),
        }
    }

    /// In what state it is.
    #[inline]
    pub(crate) fn now(&self) -> u32 {
        self.word.load()
    }

    /// Puts it into a state. Nobody else may use it meanwhile.
    pub(crate) fn set(&self, state: u32) {
        self.word.store(state);
    }

    /// Lets threads get a bias.
    pub(crate) fn allow_bias(&self, allowed: bool) {
        self.biasable.store(u32::from(allowed));
    }

    /// Takes the lock, waiting for it if need be. Returns the state that it was found in: [`FREE`], or one of those in
    /// which there is no value yet or any more. `None` instead of the lock if there never will be one.
    #[inline]
    pub(crate) fn enter(&self, thread: u64) -> (u32, Option<Hold<'_, P>>) {
        let state = self.word.load();
        match self.enter_own(state, thread) {
            Some(hold) => (FREE, Some(hold)),
            None => self.enter_shared(thread),
        }
    }

    /// Takes the lock if it is biased to this thread.
    #[inline]
    fn enter_own(&self, state: u32, thread: u64) -> Option<Hold<'_, P>> {
        let seat = self.seat(state)?;
        // IN: this is a signal handler, and its own thread is inside.
        if seat.thread.load() != thread || seat.inside.load() != OUT {
            return None;
        }
        seat.inside.store(IN);
        let hold = Hold { word: &seat.inside, to: OUT, sleepers: &self.sleepers };
        // Pairs with the heavy fence in evict(): it is seen that we are inside, or we see that the bias is gone.
        P::light_fence();
        (self.word.load() == state).then_some(hold)
    }

    /// The seat that has the bias in this state.
    #[inline]
    fn seat(&self, state: u32) -> Option<&Seat<P>> {
        const { assert!(SEATS.is_power_of_two() && SEATS <= BIASED as usize) };
        // Masked, so that no check is needed.
        (state & BIASED != 0).then(|| &self.seats[state as usize & (SEATS - 1)])
    }

    /// The same, whoever has a bias: this thread itself, too.
    #[inline(never)]
    pub(crate) fn enter_shared(&self, thread: u64) -> (u32, Option<Hold<'_, P>>) {
        let look = || {
            let state = self.word.load();
            match state {
                NO_VALUE | ENDED => Some(state),
                HELD => None,
                // Free, wiped, or somebody's bias.
                _ => P::replace(&self.word, state, HELD).then_some(state),
            }
        };
        let found = self.wait(&self.word, HELD, look);
        if matches!(found, NO_VALUE | ENDED) {
            return (found, None);
        }
        if found == WIPED {
            return (WIPED, Some(self.held(WIPED)));
        }
        if let Some(seat) = self.seat(found) {
            // Before there is a hold, which would release the lock if this panicked.
            self.evict(seat);
        }
        (FREE, Some(self.held(self.next(thread))))
    }

    /// The hold of a thread that has put the lock into [`HELD`], and will leave it in the state `to`.
    fn held(&self, to: u32) -> Hold<'_, P> {
        Hold { word: &self.word, to, sleepers: &self.sleepers }
    }

    /// Takes the lock if that needs no waiting, for signal handlers too. Otherwise returns the state it is in: [`WIPED`],
    /// [`NO_VALUE`], [`ENDED`], or [`HELD`] if somebody has it, or had it or took it a moment ago.
    ///
    /// It is left [`FREE`], and no streak is counted: who only tries has no claim to a bias.
    pub(crate) fn try_enter(&self, thread: u64) -> Result<Hold<'_, P>, u32> {
        let state = self.word.load();
        if matches!(state, WIPED | NO_VALUE | ENDED | HELD) {
            return Err(state);
        }
        match self.seat(state) {
            // If this is a signal handler, its thread may be inside: then its seat is IN.
            Some(seat) if seat.thread.load() == thread => self.enter_own(state, thread).ok_or(HELD),
            Some(seat) => self.try_evict(state, seat),
            None if P::replace(&self.word, FREE, HELD) => Ok(self.held(FREE)),
            None => Err(HELD),
        }
    }

    /// Takes the bias away from the thread of this seat, unless that thread is inside.
    ///
    /// If it is, the bias is put back, which is sound because the value was not touched: while the state was [`HELD`]
    /// nobody else could change it, and the owner, which enters without an Acquire, has nothing to see that it did not do
    /// itself. It finds the bias as it was, or saw it gone and waits for the lock as anybody does, to find it biased to
    /// itself. (After the value was used, the bias must not be given back: the owner would not see what was done.)
    #[cold]
    fn try_evict(&self, state: u32, seat: &Seat<P>) -> Result<Hold<'_, P>, u32> {
        if !P::replace(&self.word, state, HELD) {
            return Err(HELD);
        }
        // Pairs with the light fence in enter_own().
        let is_fenced = P::heavy_fence();
        if !is_fenced {
            self.biasable.store(0);
        }
        // Without the fence OUT means nothing. Acquire: pairs with the Release in Hold::drop().
        if !is_fenced || seat.inside.load_acquire() != OUT {
            // Wakes one of those that went to sleep meanwhile; the others wake by themselves.
            drop(self.held(state));
            return Err(HELD);
        }
        self.raise_needed();
        Ok(self.held(FREE))
    }

    /// Waits until the thread of this seat, whose bias was just taken away, is not inside.
    #[cold]
    fn evict(&self, seat: &Seat<P>) {
        // Pairs with the light fence in enter_own().
        if !P::heavy_fence() {
            self.biasable.store(0);
            P::wait_for_stores();
        }
        // Acquire: pairs with the Release in Hold::drop().
        self.wait(&seat.inside, IN, || (seat.inside.load_acquire() == OUT).then_some(()));
        self.raise_needed();
    }

    /// Makes the next bias harder to get, after an eviction.
    fn raise_needed(&self) {
        self.needed.store((self.needed.load() * 2).clamp(P::FIRST_STREAK, P::LONGEST_STREAK));
    }

    /// In what state the holder, which is this thread, will leave the lock: free, or biased to itself.
    fn next(&self, thread: u64) -> u32 {
        let streak = if self.last.load() == thread { self.streak.load().saturating_add(1) } else { 0 };
        self.last.store(thread);
        self.streak.store(streak);
        let is_due = streak >= self.needed.load() && self.biasable.load() != 0;
        if is_due && self.sleepers.load() == 0 { self.seat_of(thread) } else { FREE }
    }

    /// The state in which the lock is biased to this thread; free if there is no seat left for it.
    #[cold]
    fn seat_of(&self, thread: u64) -> u32 {
        let taken = self.taken.load() as usize;
        let own = self.seats[..taken].iter().position(|seat| seat.thread.load() == thread);
        let number = match own {
            Some(number) => number,
            None if taken < SEATS => {
                self.seats[taken].thread.store(thread);
                self.taken.store(taken as u32 + 1);
                taken
            }
            None => {
                // Not to look through all seats each time.
                self.streak.store(0);
                return FREE;
            }
        };
        BIASED | number as u32
    }

    /// Looks until something is found, and sleeps on a word in between while it has this value.
    #[inline]
    fn wait<R>(&self, word: &P::U32, value: u32, mut look: impl FnMut() -> Option<R>) -> R {
        match look() {
            Some(found) => found,
            None => self.wait_long(word, value, look),
        }
    }

    #[cold]
    fn wait_long<R>(&self, word: &P::U32, value: u32, mut look: impl FnMut() -> Option<R>) -> R {
        let mut patience = P::Patience::default();
        while P::pause(&mut patience) {
            if let Some(found) = look() {
                return found;
            }
        }
        P::count(&self.sleepers, 1);
        let found = loop {
            match look() {
                Some(found) => break found,
                None => P::sleep(word, value),
            }
        };
        P::count(&self.sleepers, -1);
        found
    }
}

/// Releases the lock by a plain store. An exchange would tell for certain whether somebody sleeps, but it
/// waits until every store of the emit has left the core, which costs as much as the emit. So a sleeper that
/// came at the wrong moment may be overlooked; it wakes by itself after a while.
impl<P: Platform> Drop for Hold<'_, P> {
    #[inline]
    fn drop(&mut self) {
        // Release: pairs with the acquire of the next holder, or of an evictor.
        self.word.store_release(self.to);
        if self.sleepers.load() != 0 {
            // It is fine if nobody is asleep.
            P::wake(self.word);
        }
    }
}

#[cfg(test)]
mod model;
#[cfg(test)]
mod stress;
