//! Who holds a device, on made-up machines and in real processes.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use tt_shm_driver::{Absence, Confidence, DeviceHolders, Facts, Holders, Listing, Version};
use tt_shm_tests::Machine;
use tt_shm_tests::machine::{Board, FakeProcess, Kmd};

const ID: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

fn read(machine: &Machine, version: &str) -> Holders {
    Holders::read(&machine.roots(), Version::parse(version).as_ref(), &machine.numbers())
}

fn pids(device: &DeviceHolders) -> Vec<(u32, u32, Confidence)> {
    device.processes.iter().map(|holder| (holder.pid, holder.handles, holder.confidence)).collect()
}

#[test]
fn the_drivers_list_has_everyone_once() {
    let machine = Machine::new(Kmd::V2_9, &[Board::P300c]);
    let group = format!("/system.slice/docker-{ID}.scope");
    machine.add_process(&FakeProcess::new(42, "python3 train.py").in_group(&group), &[0, 0, 1]);
    machine.list_pids(0, &[42, 4711, 42, 0, 0]);
    let holders = read(&machine, "2.9.0");
    let device = &holders.devices[0];
    assert_eq!(device.listing, Listing::Driver);
    assert_eq!(pids(device), [(42, 2, Confidence::Listed), (4711, 1, Confidence::Listed)]);
    assert_eq!((device.invisible, device.malformed), (2, 0));
    let facts = device.processes[0].facts.as_ref().unwrap();
    let expected = Facts {
        uid: Some(1000),
        command: "python3 train.py".to_owned(),
        start_ticks: 5000,
        started: Some(1_700_000_000 + 5000 / rustix::param::clock_ticks_per_second()),
        resident_bytes: Some(4096 * 1024),
        cpu_time: Duration::from_millis(250_000 / rustix::param::clock_ticks_per_second()),
        groups: facts.groups.clone(),
    };
    assert_eq!(*facts, expected);
    assert_eq!(facts.groups.container.as_ref().unwrap().to_string(), format!("docker:{ID}"));
    assert_eq!(device.processes[1].facts, None, "hidden, or ended");
    assert!(holders.devices[1].processes.is_empty(), "the list counts, not the descriptors");
    let gaps = holders.gaps().join("\n");
    assert!(
        gaps.starts_with("holders that procfs does not show") && gaps.contains("(run on the host): 2"),
        "{gaps}"
    );
}

#[test]
fn pids_of_another_namespace_are_not_believed() {
    let machine = Machine::new(Kmd::V2_5, &[Board::N150]);
    machine.add_process(&FakeProcess::new(7, "unrelated"), &[]);
    machine.add_process(&FakeProcess::new(42, "holder"), &[0]);
    machine.list_pids(0, &[1, 7, 42]);
    for version in ["2.5.0", "2.6.1", ""] {
        let holders = read(&machine, version);
        let expected = [
            (1, 1, Confidence::Unconfirmed),
            (7, 1, Confidence::Unconfirmed),
            (42, 1, Confidence::Confirmed),
        ];
        assert_eq!(pids(&holders.devices[0]), expected, "{version}");
        let known: Vec<bool> =
            holders.devices[0].processes.iter().map(|holder| holder.facts.is_some()).collect();
        assert_eq!(known, [false, false, true], "an unrelated process is not described");
        assert!(
            holders
                .gaps()
                .iter()
                .any(|gap| gap.starts_with("pids of the driver's list") && gap.ends_with(": 2")),
            "{:?}",
            holders.gaps()
        );
    }
}

#[test]
fn without_a_list_descriptors_tell() {
    let machine = Machine::new(Kmd::V2_0, &[Board::P300c]);
    machine.add_process(&FakeProcess::new(42, "server"), &[0, 1, 1]);
    machine.add_process(&FakeProcess::new(43, "other"), &[]);
    machine.add_process(&FakeProcess::new(44, "client"), &[1, 10]);
    let holders = read(&machine, "2.0.0");
    let by = Listing::Descriptors(Absence::Missing);
    assert!(holders.devices.iter().all(|device| device.listing == by));
    assert_eq!(pids(&holders.devices[0]), [(42, 1, Confidence::Confirmed)]);
    assert_eq!(pids(&holders.devices[1]), [(42, 2, Confidence::Confirmed), (44, 1, Confidence::Confirmed)]);
    assert_eq!((holders.denied, holders.is_hiding, holders.is_cut), (0, false, false));
    assert_eq!(holders.gaps(), [""; 0]);
}

#[test]
fn what_may_not_be_read_is_counted() {
    let machine = Machine::new(Kmd::V2_0, &[Board::N150]);
    machine.add_process(&FakeProcess::new(42, "ours"), &[0]);
    machine.add_process(&FakeProcess::new(43, "theirs"), &[0]);
    fs::set_permissions(machine.path(), PermissionsExt::from_mode(0o755)).unwrap();
    fs::set_permissions(machine.path().join("proc/43/fd"), PermissionsExt::from_mode(0o000)).unwrap();
    machine.write("proc/self/mountinfo", "24 29 0:22 / /proc rw,nosuid - proc proc rw,hidepid=invisible");
    // Root may read everything, so look as somebody else; only this thread becomes that.
    let look = || {
        if rustix::process::geteuid().is_root() {
            let nobody = rustix::process::Uid::from_raw(65_534);
            rustix::thread::set_thread_res_uid(nobody, nobody, nobody).unwrap();
        }
        read(&machine, "2.0.0")
    };
    let holders = std::thread::scope(|scope| scope.spawn(look).join().unwrap());
    assert_eq!(pids(&holders.devices[0]), [(42, 1, Confidence::Confirmed)]);
    assert_eq!((holders.denied, holders.is_hiding), (1, true));
    let gaps = holders.gaps().join("\n");
    assert!(gaps.contains("run as root): 1") && gaps.contains("hidepid"), "{gaps}");
    fs::set_permissions(machine.path().join("proc/43/fd"), PermissionsExt::from_mode(0o755)).unwrap();
}

#[test]
fn pods_and_jobs_are_told() {
    let machine = Machine::new(Kmd::V2_9, &[Board::N150]);
    let pod = "kubepods-burstable-pod1f2e3d4c_0001_4a2b_8c3d_0123456789ab.slice";
    let pod = format!("/kubepods.slice/kubepods-burstable.slice/{pod}/cri-containerd-{ID}.scope");
    machine.add_process(&FakeProcess::new(1, "in_pod").in_group(&pod), &[]);
    let job = "/system.slice/slurmstepd.scope/job_77/step_0/user/task_0";
    machine.add_process(&FakeProcess::new(2, "in_job").in_group(job), &[]);
    machine.list_pids(0, &[1, 2]);
    let holders = read(&machine, "2.9.0");
    let groups = holders.devices[0].processes.iter().map(|holder| &holder.facts.as_ref().unwrap().groups);
    let groups: Vec<_> = groups.collect();
    assert_eq!(groups[0].pod_uid.as_deref(), Some("1f2e3d4c-0001-4a2b-8c3d-0123456789ab"));
    assert_eq!(groups[0].container.as_ref().unwrap().runtime, Some("containerd"));
    assert_eq!((groups[0].slurm_job, groups[1].slurm_job), (None, Some(77)));
}

#[test]
fn nonsense_in_procfs_harms_nothing() {
    let machine = Machine::new(Kmd::V2_9, &[Board::N150]);
    machine.add_process(&FakeProcess::new(42, "x"), &[]);
    machine.write("proc/42/stat", "42 (x) S");
    machine.write("proc/driver/tenstorrent/0/pids", "42\nx\n-5\n99999999999");
    let holders = read(&machine, "2.9.0");
    assert_eq!(pids(&holders.devices[0]), [(42, 1, Confidence::Listed)]);
    assert_eq!((holders.devices[0].malformed, &holders.devices[0].processes[0].facts), (3, &None));
}

#[test]
fn this_machines_processes_can_be_searched() {
    let missing = tt_shm_driver::Roots::default();
    let holders = Holders::read(&missing, None, &[u32::MAX]);
    assert!(holders.devices[0].processes.is_empty());
    assert_eq!(holders.devices[0].listing, Listing::Descriptors(Absence::Missing));
}
