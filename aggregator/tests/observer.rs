//! What an observer of the merge is told.

use std::sync::{Arc, Mutex};

use crate::common::{Scene, TestProcess, chip, settled};
use shm_layout::{Class, Counters, Event};
use tt_shm_aggregator::{Aggregator, Config, Observe};
use tt_shm_reader::Segment;

/// Something that an observer was told about a process, by pid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Told {
    Event(u64, u64),
    Counters(u64, u64),
    Ended(u64),
    Broke(u64),
}

#[derive(Clone, Debug, Default)]
struct Notes(Arc<Mutex<Vec<Told>>>);

impl Notes {
    fn aggregator(&self, scene: &Scene) -> Aggregator {
        let observer: Box<dyn Observe> = Box::new(self.clone());
        Aggregator::new(Config { observer: Some(observer), ..Config::new(scene.namespace.clone()) }).unwrap()
    }

    fn add(&self, told: Told) {
        self.0.lock().unwrap().push(told);
    }

    fn take(&self) -> Vec<Told> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

impl Observe for Notes {
    fn events(&mut self, segment: &Segment, events: &mut dyn Iterator<Item = (u64, &Event)>) {
        let mut last = 0;
        for (time, event) in events {
            assert!(time >= last && time > 0);
            last = time;
            self.add(Told::Event(u64::from(segment.pid()), event.size));
        }
    }

    fn counters(&mut self, segment: &Segment, _: u64, devices: &[Counters]) {
        self.add(Told::Counters(u64::from(segment.pid()), devices[0].dram_used()));
    }

    fn ended(&mut self, segment: &Segment, _: u64) {
        self.add(Told::Ended(u64::from(segment.pid())));
    }

    fn broke(&mut self, segment: &Segment) {
        self.add(Told::Broke(u64::from(segment.pid())));
    }
}

#[test]
fn events_of_all_processes_come_once_and_in_their_order() {
    let (scene, notes) = (Scene::new(), Notes::default());
    let mut aggregator = notes.aggregator(&scene);
    let (mut one, mut two) = scene.pair(7);
    let (a, b) = (one.pid(), two.pid());
    one.alloc(0, Class::Dram, 1);
    two.alloc(0, Class::Dram, 2);
    one.alloc(0, Class::Dram, 3);
    settled(&mut aggregator);
    settled(&mut aggregator);
    assert_eq!(notes.take(), [Told::Event(a, 1), Told::Event(b, 2), Told::Event(a, 3)]);
    one.close();
    settled(&mut aggregator);
    assert_eq!(notes.take(), [Told::Ended(a)]);
}

#[test]
fn events_that_were_missed_are_replaced_by_counters() {
    let (scene, notes) = (Scene::new(), Notes::default());
    let mut aggregator = notes.aggregator(&scene);
    let mut process = TestProcess::new(&scene.namespace, 64);
    let (device, pid) = (process.register(chip(7)), process.pid());
    process.alloc(device, Class::Dram, 5);
    settled(&mut aggregator);
    (0..100).for_each(|_| process.alloc(device, Class::Dram, 1));
    settled(&mut aggregator);
    process.alloc(device, Class::Dram, 2);
    settled(&mut aggregator);
    assert_eq!(notes.take(), [Told::Event(pid, 5), Told::Counters(pid, 105), Told::Event(pid, 2)]);
}

#[test]
fn it_is_told_of_a_process_that_is_not_believed() {
    let (scene, notes) = (Scene::new(), Notes::default());
    let mut aggregator = notes.aggregator(&scene);
    let mut process = scene.process();
    let (device, pid) = (process.register(chip(7)), process.pid());
    process.alloc(device, Class::Dram, 5);
    process.free(device, Class::Dram, 6);
    settled(&mut aggregator);
    let told = notes.take();
    assert_eq!(told.iter().filter(|told| **told == Told::Broke(pid)).count(), 1, "{told:?}");
    assert_eq!(told.first(), Some(&Told::Event(pid, 5)));
}
