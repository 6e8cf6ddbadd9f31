//! Tests of records.

mod suite {
    mod hostile;
    mod live;
    mod made_up;
    mod round_trip;
}
