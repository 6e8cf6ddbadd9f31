"""Workers of a DataLoader, where torch is installed: .ci/python does not install it, since it has 2 GB."""

from __future__ import annotations

import os
from typing import Any

import pytest

import tt_shm

torch = pytest.importorskip("torch")

class Samples(torch.utils.data.Dataset):  # type: ignore[misc]
    """Each sample is what its worker reports and sees: its pid, and its bytes on the device."""

    def __len__(self) -> int:
        return 8

    def __getitem__(self, index: int) -> Any:
        # Workers end without what runs at exit: a tracker that is left open leaves a file, which the next one removes.
        with tt_shm.Tracker() as own:
            device = own.register_device(1, logical_id=0)
            own.alloc(device, index, 100 + index)
            own.alloc(device, 1000, 5)
            own.free(device, 1000)
            assert tt_shm.max_memory_allocated(0, strict=True) == 105 + index
            return torch.tensor([os.getpid(), tt_shm.memory_allocated(0, strict=True)])


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_workers_of_a_dataloader(method: str, tracker: tt_shm.Tracker, device: tt_shm.TrackerDevice) -> None:
    tracker.alloc(device, 1, 7)
    loader = torch.utils.data.DataLoader(Samples(), num_workers=2, multiprocessing_context=method, batch_size=None)
    seen = [sample.tolist() for sample in loader]
    assert [used for _, used in seen] == [100 + index for index in range(8)]
    workers = {pid for pid, _ in seen}
    assert len(workers) == 2 and os.getpid() not in workers
    assert tt_shm.memory_allocated(device, strict=True) == 7
