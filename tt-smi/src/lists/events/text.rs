//! One event as a line of text, similar to the log that users know.

use std::fmt;

use tt_shm_reader::{Class, EventKind, KernelType};

use super::line::Happened;
use crate::escape::fit;
use crate::model::{Place, Word};
use crate::segments::pid_text;
use crate::units::{UNKNOWN, mib, plural, time_of_day};

/// Most columns of a name; JSON has it in full.
const MOST_COLUMNS: usize = 200;

impl Happened {
    fn total(&self) -> String {
        self.total_bytes.map_or_else(|| UNKNOWN.to_owned(), |total| format!("{} MiB", mib(total)))
    }

    fn device(&self) -> String {
        self.device.map_or_else(|| UNKNOWN.to_owned(), |device| device.to_string())
    }

    /// `DRAM`, `L1_SMALL`.
    fn memory(&self) -> String {
        self.class.map_or_else(|| UNKNOWN.to_owned(), |class| class.name().to_ascii_uppercase())
    }

    fn kernel(&self) -> &'static str {
        let kernel = self.class.and_then(Class::kernel_type);
        kernel.map_or(UNKNOWN, KernelType::label)
    }

    /// ` "name"`, or nothing.
    fn quoted(&self) -> String {
        self.name.as_ref().map_or_else(String::new, |name| format!(" \"{}\"", fit(name, MOST_COLUMNS)))
    }

    fn write_kernel(&self, f: &mut fmt::Formatter<'_>, sign: char) -> fmt::Result {
        let (size, total) = (mib(self.size_bytes.unwrap_or(0)), self.total());
        let binary = match (self.binary_bytes, self.cores) {
            (Some(binary), Some(cores)) => format!("{binary} B x {}, ", plural(u64::from(cores), "core")),
            _ => String::new(),
        };
        let (event, kernel, device) = (self.event(), self.kernel(), self.device());
        write!(
            f,
            "[{event}] {kernel} kernel on Device {device}: {sign}{size} MiB ({binary}id {:#x})",
            self.id
        )?;
        let late = if self.late == Some(true) { " (late: loaded before tracking began)" } else { "" };
        write!(f, " (Total: {total}){}{late}", self.quoted())
    }

    fn write_cb(&self, f: &mut fmt::Formatter<'_>, sign: char) -> fmt::Result {
        let (size, total) = (mib(self.size_bytes.unwrap_or(0)), self.total());
        write!(f, "[{}] Device {}: {sign}{size} MiB (Total: {total})", self.event(), self.device())?;
        let inside = if self.globally_allocated == Some(true) { ", inside an L1 buffer" } else { "" };
        write!(f, " (cb {:#x}, program {:#x}{inside})", self.id, self.program.unwrap_or(0))
    }

    fn write_buffer(&self, f: &mut fmt::Formatter<'_>, verb: &str) -> fmt::Result {
        let size = self.size_bytes.unwrap_or(0);
        let (memory, device) = (self.memory(), self.device());
        let dropped = if self.dropped == Some(true) { " (device closed)" } else { "" };
        write!(
            f,
            "{verb} {size} bytes of {memory} on device {device} (buffer_id={:#x}){}{dropped}",
            self.id,
            self.quoted()
        )
    }

    fn write_dispatch(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let how = if self.cached == Some(true) { "cached" } else { "sent" };
        let (kernels, cbs) = (mib(self.size_bytes.unwrap_or(0)), mib(self.cb_resident_bytes.unwrap_or(0)));
        write!(f, "[{}] Program {:#x}{} on Device {}", self.event(), self.id, self.quoted(), self.device())?;
        write!(f, " ({how}{}): {kernels} MiB of kernels and {cbs} MiB of CBs resident", self.dispatched())
    }

    /// Number, lane and queue, unless they are the usual ones: `, 32 times, lane 1, queue 1`.
    fn dispatched(&self) -> String {
        let times = self.times.filter(|times| *times != 1).map(|times| format!(", {times} times"));
        let place = |what: &str, number: Option<u8>| {
            number.filter(|number| *number != 0).map(|number| format!(", {what} {number}"))
        };
        let parts = [times, place("lane", self.lane), place("queue", self.queue)];
        parts.into_iter().flatten().collect()
    }

    fn write_failed(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = Place::of(self.class);
        let unit = if self.per_bank == Some(true) { place.unit() } else { "" };
        let figure = |figure: Option<u64>| {
            figure.map_or_else(|| UNKNOWN.to_owned(), |figure| format!("{figure}{unit}"))
        };
        write!(f, "[{}] {} on Device {}: ", self.event(), self.memory(), self.device())?;
        write!(f, "requested {} bytes", self.size_bytes.unwrap_or(0))?;
        if let Some(needed) = self.needed_per_bank_bytes {
            write!(f, " ({needed} {})", place.each(self.banks))?;
        }
        let (free, largest) = (figure(self.free_bytes), figure(self.largest_free_bytes));
        write!(f, ", {free} free, largest block {largest}")
    }
}

impl fmt::Display for Happened {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // JSON has the date.
        let time = self.time.rfc3339();
        let time = time_of_day(time.as_deref());
        write!(f, "{time} [PID {}] ", pid_text(self.pid, self.claimed))?;
        let event = self.event();
        match self.kind {
            Some(EventKind::Alloc) => self.write_buffer(f, "Allocated"),
            Some(EventKind::Free) => self.write_buffer(f, "Freed"),
            Some(EventKind::CbAlloc) => self.write_cb(f, '+'),
            Some(EventKind::CbFree) => self.write_cb(f, '-'),
            Some(EventKind::KernelLoad) => self.write_kernel(f, '+'),
            Some(EventKind::KernelUnload) => self.write_kernel(f, '-'),
            Some(EventKind::KernelDispatch) => self.write_dispatch(f),
            Some(EventKind::AllocFailed) => self.write_failed(f),
            Some(EventKind::Marker) => {
                write!(
                    f,
                    "[{event}] {} step {}{}",
                    self.phase.map_or(UNKNOWN, Word::word),
                    self.id,
                    self.quoted()
                )
            }
            Some(EventKind::Gauge) => {
                let (used, total) = (self.used_bytes.unwrap_or(0), self.size_bytes.unwrap_or(0));
                let (device, programs) = (self.device(), plural(self.programs.unwrap_or(0), "program"));
                write!(
                    f,
                    "[{event}] Kernel ring buffer on Device {device}: {used} of {total} bytes, {programs}"
                )
            }
            Some(EventKind::ProgramEnd) => {
                write!(f, "[{event}] Program {:#x} on Device {}", self.id, self.device())
            }
            Some(EventKind::Name) => {
                let (memory, id, device) = (self.memory(), self.id, self.device());
                write!(f, "[{event}] {memory} {id:#x} on Device {device} is{}", self.quoted())
            }
            Some(EventKind::PeakReset | EventKind::DeviceOpen | EventKind::DeviceClose) => {
                write!(f, "[{event}] Device {}", self.device())
            }
            None => write!(f, "[{event}]"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::escape::Foreign;
    use crate::model::Moment;
    use tt_shm_reader::{Event, flags};

    fn line(event: Event, total: u64, name: Option<&str>) -> String {
        let line =
            Happened::new(42, Some(0), Moment::default(), Some(total), name.map(Foreign::from), &event)
                .to_string();
        line.strip_prefix("- [PID 42] ").unwrap().to_owned()
    }

    #[test]
    fn kernels_are_logged_as_before() {
        let load = Event {
            class: Class::KernelFabric as u8,
            size: 917_504,
            cores: 16,
            id: 0x10,
            ..Event::new(EventKind::KernelLoad, 0)
        };
        assert_eq!(
            line(load, 917_504, None),
            "[KERNEL_LOAD] Fabric kernel on Device 0: +0.875 MiB (57344 B x 16 cores, id 0x10) (Total: 0.875 MiB)"
        );
    }

    #[test]
    fn buffers_and_circular_buffers_are_logged_as_before() {
        let alloc = Event { size: 4096, id: 0xab, ..Event::new(EventKind::Alloc, 0) };
        assert_eq!(line(alloc, 0, None), "Allocated 4096 bytes of DRAM on device 0 (buffer_id=0xab)");
        let cb = Event { class: Class::Cb as u8, size: 1 << 20, aux: 3, ..Event::new(EventKind::CbAlloc, 0) };
        let text = line(cb, 3 << 20, None);
        assert!(text.starts_with("[CB_ALLOC] Device 0: +1 MiB (Total: 3 MiB)"), "{text}");
    }

    #[test]
    fn names_are_escaped_and_unknown_totals_are_a_dash() {
        let event = Event { size: 1, ..Event::new(EventKind::CbFree, 0) };
        let happened = Happened::new(1, None, Moment::default(), None, None, &event);
        assert!(happened.to_string().contains("Device -: -0.000001 MiB (Total: -)"), "{happened}");
        let named = line(Event::new(EventKind::Alloc, 0), 0, Some("a\\\u{1b}[2J"));
        assert!(named.ends_with(r#""a\\\u{1b}[2J""#), "{named}");
    }

    #[test]
    fn what_makes_an_event_special_is_said() {
        let late = Event { size: 1 << 20, flags: flags::LATE, ..Event::new(EventKind::KernelLoad, 0) };
        assert!(line(late, 1 << 20, None).ends_with("(late: loaded before tracking began)"));
        let cb = Event { flags: flags::GLOBAL, aux: 3, ..Event::new(EventKind::CbAlloc, 0) };
        assert!(line(cb, 0, None).ends_with("(cb 0x0, program 0x3, inside an L1 buffer)"));
        let dropped = Event { size: 64, id: 1, flags: flags::DROPPED, ..Event::new(EventKind::Free, 0) };
        assert_eq!(
            line(dropped, 0, None),
            "Freed 64 bytes of DRAM on device 0 (buffer_id=0x1) (device closed)"
        );
        let gauge = Event { size: 70, address: 35, aux: 5, ..Event::new(EventKind::Gauge, 0) };
        assert_eq!(
            line(gauge, 0, None),
            "[GAUGE] Kernel ring buffer on Device 0: 35 of 70 bytes, 5 programs"
        );
    }

    #[test]
    fn circular_buffers_fail_on_cores_and_buffers_in_banks() {
        let failed = |class: Class| Event {
            class: class as u8,
            size: 6400,
            address: 50,
            id: 100,
            cores: 64,
            flags: flags::PER_BANK,
            ..Event::new(EventKind::AllocFailed, 0)
        };
        let buffer = line(failed(Class::L1), 0, None);
        assert!(buffer.contains("6400 bytes (100 in each of 64 banks), 50 per bank free"), "{buffer}");
        let circular = line(failed(Class::Cb), 0, None);
        assert!(circular.contains("6400 bytes (100 on each of 64 cores), 50 per core free"), "{circular}");
    }
}
