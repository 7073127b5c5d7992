"""Settings for all tests: one thread a process, since two processes share two cores; no deadlines."""

import os

import torch
from hypothesis import settings

os.environ["OMP_NUM_THREADS"] = "1"  # for the processes that tests start
torch.set_num_threads(1)

settings.register_profile("hedged", settings(deadline=None))  # the rest stays as it was loaded
settings.load_profile("hedged")
