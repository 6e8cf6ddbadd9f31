//! Errors as exceptions. Each has the attribute `code`, the stable number of the error, and `errno`, or `None`.

use pyo3::create_exception;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

create_exception!(tt_shm, Error, PyRuntimeError, "Something of tt_shm failed.");
create_exception!(tt_shm, OpenError, Error, "Tracking could not be started.");
create_exception!(tt_shm, RecordError, Error, "A call does not fit what was reported before.");
create_exception!(tt_shm, ReadError, Error, "A segment cannot be read.");

/// The exception with the numbers of the error.
pub(crate) fn with_code(raised: PyErr, code: u32, errno: Option<i32>) -> PyErr {
    with(with(raised, "code", code), "errno", errno)
}

/// The exception with another attribute.
pub(crate) fn with<T: for<'py> IntoPyObject<'py>>(raised: PyErr, name: &str, value: T) -> PyErr {
    match Python::attach(|py| raised.value(py).setattr(name, value)) {
        Ok(()) => raised,
        Err(other) => other,
    }
}
