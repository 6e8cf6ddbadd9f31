//! A process that reports through the writer what it is told to on standard input.

use anyhow::{Context, Result, anyhow};
use std::io::{BufRead, Write};
use std::os::unix::process::CommandExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;
use tt_shm_tests::model::{self, DeviceModel, Name, Thing};
use tt_shm_tests::script::{Answer, Command, Truth};
use tt_shm_tests::workload::Workload;
use tt_shm_writer::{
    Alloc, Allocation, BufferType, CircularBuffer, Class, CoreMemory, CoreType, Device, DeviceInfo, Dispatch,
    FailedAlloc, Kernel, KernelType, Launch, Mesh, NameId, PciAddress, ProgramBinaryStatus, Record, Tracker,
};

fn main() -> Result<()> {
    let mut host = Host::default();
    for line in std::io::stdin().lock().lines() {
        let command = serde_json::from_str(&line?)?;
        let answer = host.obey(command).unwrap_or_else(|error| Answer::Failed(format!("{error:#}")));
        let mut output = std::io::stdout().lock();
        writeln!(output, "{}", serde_json::to_string(&answer)?)?;
        output.flush()?;
    }
    Ok(())
}

#[derive(Default)]
struct Host {
    tracker: Option<Tracker>,
    devices: Vec<Device>,
    truth: Truth,
    background: Option<(Arc<AtomicBool>, JoinHandle<Result<Truth>>)>,
}

impl Host {
    fn obey(&mut self, command: Command) -> Result<Answer> {
        match command {
            Command::Open { ring_slots, chips } => self.open(ring_slots, &chips)?,
            Command::Work { seed, calls, threads, pause_us } => self.work(seed, calls, threads, pause_us)?,
            Command::Start { seed, pause_us } => self.start(seed, pause_us)?,
            Command::Stop => self.stop()?,
            Command::Figures => self.figures()?,
            Command::Grow { count } => self.grow(count)?,
            Command::Spin { pairs } => self.spin(pairs)?,
            Command::Register { chip, dram_bytes, bus } => self.register(chip, dram_bytes, bus)?,
            Command::Hold { id, bytes } => {
                self.tracker()?.alloc(self.devices[0], Alloc::new(BufferType::Dram, id, bytes))?;
            }
            Command::Misuse => {
                let freed = self.tracker()?.free(self.devices[0], u64::MAX - 1);
                anyhow::ensure!(freed.is_err(), "a free of nothing was accepted");
            }
            Command::Fail { request, free, largest } => {
                let failed = FailedAlloc::new(Class::Dram, request).free(free, largest);
                self.tracker()?.alloc_failed(self.devices[0], failed)?;
            }
            Command::Operations => self.operations()?,
            Command::SelfChecks { made, different } => self.tracker()?.self_checks(made, different)?,
            Command::Truth => return Ok(Answer::Truth(self.truth.clone())),
            Command::Close => self.tracker = None,
            Command::Exit => std::process::exit(0),
            Command::Exec => return Err(std::process::Command::new("sleep").arg("60").exec().into()),
        }
        Ok(Answer::Done)
    }

    fn open(&mut self, ring_slots: u64, chips: &[u64]) -> Result<()> {
        let mut builder = Tracker::builder();
        if ring_slots > 0 {
            builder = builder.ring_slots(ring_slots);
        }
        let tracker = builder.open()?;
        for (number, chip_id) in chips.iter().enumerate() {
            let info = DeviceInfo {
                chip_id: *chip_id,
                logical_id: Some(number as u32),
                dram_bytes: Some(12 << 30),
                l1: Some(CoreMemory { cores: 64, bytes_per_core: 1464 << 10 }),
                eth: Some(CoreMemory { cores: 16, bytes_per_core: 256 << 10 }),
                ..Default::default()
            };
            self.devices.push(tracker.register_device(&info)?);
        }
        self.truth.devices.resize_with(chips.len(), Default::default);
        self.tracker = Some(tracker);
        Ok(())
    }

    fn register(&mut self, chip_id: u64, dram_bytes: u64, bus: u8) -> Result<()> {
        let pci = PciAddress { domain: 0, bus, device: 0, function: 0 };
        let info = DeviceInfo { chip_id, dram_bytes: Some(dram_bytes), pci: Some(pci), ..Default::default() };
        let device = self.tracker()?.register_device(&info)?;
        self.devices.push(device);
        self.truth.devices.push(Default::default());
        Ok(())
    }

    fn tracker(&self) -> Result<&Tracker> {
        self.tracker.as_ref().context("the tracker is not open")
    }

    fn work(&mut self, seed: u64, calls: u64, threads: u64, pause_us: u64) -> Result<()> {
        let workers: Vec<_> = (0..threads)
            .map(|thread| {
                let mut work = Workload::new(seed, self.devices.clone(), thread, threads);
                let tracker = self.tracker()?.clone();
                Ok(std::thread::spawn(move || -> Result<Truth> {
                    for _ in 0..calls {
                        work.step(&tracker)?;
                        pause(pause_us);
                    }
                    Ok(work.truth())
                }))
            })
            .collect::<Result<_>>()?;
        for worker in workers {
            let truth = worker.join().map_err(|_| anyhow!("a thread panicked"))??;
            self.learn(truth);
        }
        Ok(())
    }

    /// One truth is taken as it is; several cannot know peaks.
    fn learn(&mut self, truth: Truth) {
        if self.truth.live.is_empty() && self.truth.devices.iter().all(|device| *device == Default::default())
        {
            self.truth = truth;
        } else {
            self.truth.merge(truth);
        }
    }

    fn start(&mut self, seed: u64, pause_us: u64) -> Result<()> {
        let stop = Arc::new(AtomicBool::new(false));
        let mut work = Workload::new(seed, self.devices.clone(), 0, 1);
        let tracker = self.tracker()?.clone();
        let stopped = stop.clone();
        let thread = std::thread::spawn(move || -> Result<Truth> {
            while !stopped.load(Ordering::Relaxed) {
                work.step(&tracker)?;
                pause(pause_us);
            }
            Ok(work.truth())
        });
        self.background = Some((stop, thread));
        Ok(())
    }

    fn stop(&mut self) -> Result<()> {
        let (stop, thread) = self.background.take().context("nothing was started")?;
        stop.store(true, Ordering::Relaxed);
        let truth = thread.join().map_err(|_| anyhow!("the thread panicked"))??;
        self.learn(truth);
        Ok(())
    }

    fn figures(&mut self) -> Result<()> {
        let mut models = vec![DeviceModel::default(); self.devices.len()];
        let kinds = [
            (KernelType::Fabric, CoreType::Ethernet, 56 << 10, 2),
            (KernelType::Dispatch, CoreType::Tensix, 46 << 10, 2),
            (KernelType::Application, CoreType::Tensix, 24 << 10, 5),
        ];
        for (model, device) in models.iter_mut().zip(&self.devices) {
            let mut id = 0;
            for (kernel_type, core_type, size, count) in kinds {
                for _ in 0..count {
                    id += 1;
                    self.tracker()?.kernel_load(*device, Kernel::new(id, kernel_type, core_type, size, 1))?;
                    let ethernet = core_type == CoreType::Ethernet;
                    model.add(Name::Kernel(id), Thing::new(kernel_type.class(), size).on_ethernet(ethernet));
                }
            }
        }
        self.learn(model::truth(&models));
        Ok(())
    }

    fn grow(&mut self, count: u64) -> Result<()> {
        let mut model = DeviceModel::default();
        let alloc = |id| Alloc::new(BufferType::L1, id, 64);
        for id in 0..count {
            self.tracker()?.alloc(self.devices[0], alloc(id))?;
            model.add(Name::Buffer(id), Thing::new(BufferType::L1.class(), 64));
        }
        self.learn(model::truth(&[model]));
        Ok(())
    }

    fn operations(&self) -> Result<()> {
        let (tracker, mesh) = (self.tracker()?, Mesh::new(self.devices.clone()));
        let [weights, matmul, softmax] =
            ["weights", "ttnn.matmul", "ttnn.softmax"].map(|name| tracker.intern(name));
        let buffer = |id, size| tracker.alloc(&mesh, Alloc::new(BufferType::Dram, id, size));
        tracker.device_open(&mesh)?;
        [(1, 3000), (2, 5000), (3, 1000)].into_iter().try_for_each(|(id, size)| buffer(id, size))?;
        tracker.free(&mesh, 3)?;
        // The peak is over.
        tracker.name(&mesh, Allocation::Buffer(1), weights?, NameId::NONE)?;
        tracker.name(&mesh, Allocation::Buffer(2), matmul?, NameId::NONE)?;
        tracker.cb_alloc(&mesh, CircularBuffer::new(7, 1, 100, 64))?;
        let kernels = [Kernel::new(1, KernelType::Application, CoreType::Tensix, 24 << 10, 1)];
        let dispatch = Dispatch::new(7).name(softmax?);
        tracker.launch(&mesh, Launch::of(dispatch, &kernels, ProgramBinaryStatus::NotSent))?;
        tracker.program_end(&mesh, 7)?;
        tracker.alloc_failed(&mesh, FailedAlloc::new(Class::L1, 1 << 40))?;
        tracker.free_dropped(&mesh, 2)?;
        tracker.device_close(&mesh)?;
        Ok(())
    }

    fn spin(&mut self, pairs: u64) -> Result<()> {
        let (tracker, device) = (self.tracker()?, self.devices[0]);
        for _ in 0..pairs {
            tracker.alloc(device, Alloc::new(BufferType::Dram, u64::MAX, 1000))?;
            tracker.free(device, u64::MAX)?;
        }
        let mut model = DeviceModel::default();
        let class = BufferType::Dram.class();
        model.add(Name::Buffer(u64::MAX), Thing::new(class, 1000));
        model.remove(Name::Buffer(u64::MAX));
        self.learn(model::truth(&[model]));
        Ok(())
    }
}

fn pause(us: u64) {
    if us > 0 {
        std::thread::sleep(Duration::from_micros(us));
    }
}
