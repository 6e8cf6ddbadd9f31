//! The machine that figures were measured on.

/// The machine, without anything that tells which one it is.
pub fn machine() -> String {
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let cpu = field("/proc/cpuinfo", "model name").unwrap_or_else(|| std::env::consts::ARCH.to_owned());
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let kernel = kernel.split(['-', '\n']).next().unwrap_or_default().to_owned();
    let memory = field("/proc/meminfo", "MemTotal").unwrap_or_default();
    let gib = memory.split(' ').next().and_then(|kib| kib.parse::<f64>().ok()).unwrap_or(0.0) / 1048576.0;
    let guest = field("/proc/cpuinfo", "flags").is_some_and(|flags| flags.contains("hypervisor"));
    let kind = if guest { "virtual machine" } else { "bare metal" };
    format!("{cpu}, {cores} cores ({kind}), {gib:.0} GiB, Linux {kernel}")
}

fn field(file: &str, key: &str) -> Option<String> {
    let text = std::fs::read_to_string(file).ok()?;
    let line = text.lines().find(|line| line.starts_with(key))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

/// The load average of the last minute.
pub fn load() -> f64 {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().and_then(|load| load.parse().ok()).unwrap_or(0.0)
}
