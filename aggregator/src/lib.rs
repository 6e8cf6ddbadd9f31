//! Follows every process's segment and publishes device statistics in a shared table
