"""All-reduce over every GPU of a Kubernetes Job with torchrun: prints what nccl-tests prints."""

import os
import time

import torch
import torch.distributed as dist


def main() -> None:
    """Time all-reduces of growing size."""
    dist.init_process_group("nccl")
    rank, size = dist.get_rank(), dist.get_world_size()
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    seen = []
    wrong = torch.zeros(1, dtype=torch.int64, device="cuda")
    number = 2**20
    while number <= 2**32:
        # Every element of the sum is 1 + 2 + … + size, exact in 32 bits: what differs was computed or carried falsely.
        data = torch.full((number // 4,), float(rank + 1), dtype=torch.float32, device="cuda")
        dist.all_reduce(data)
        wrong += torch.count_nonzero(data != size * (size + 1) // 2)
        data.zero_()  # sums of sums would reach infinity
        for _ in range(5):
            dist.all_reduce(data)
        torch.cuda.synchronize()
        begin = time.perf_counter()
        for _ in range(20):
            dist.all_reduce(data)
        torch.cuda.synchronize()
        seconds = (time.perf_counter() - begin) / 20
        algorithm = number / seconds / 1e9
        bus = algorithm * 2 * (size - 1) / size
        seen.append(bus)
        if rank == 0:
            print(
                f"{number:12d} {number // 4:12d} float sum -1 {seconds * 1e6:8.1f} {algorithm:7.2f} {bus:7.2f} 0",
                flush=True,
            )
        number *= 2
    dist.all_reduce(wrong)
    if rank == 0:
        found = int(wrong.item())
        print(f"# Out of bounds values : {found} {'FAILED' if found else 'OK'}")
        print(f"# Avg bus bandwidth    : {sum(seen) / len(seen):g}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
