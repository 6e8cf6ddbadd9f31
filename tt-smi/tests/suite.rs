//! Tests of what is printed and drawn, in one program.

mod common;

mod figures;
mod folding;
mod formats;
mod json;
mod lists_views;
mod screen;
mod table;
mod views;
