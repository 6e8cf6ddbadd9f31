//! Tests of records.

mod suite {
    mod made_up;
    mod round_trip;
}
