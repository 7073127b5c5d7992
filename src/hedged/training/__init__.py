"""Configs, the training loop, and run folders."""

from hedged.training.build import build_data as build_data
from hedged.training.config import Config as Config
from hedged.training.config import RetrofitConfig as RetrofitConfig
from hedged.training.config import RunConfig as RunConfig
from hedged.training.config import load_config as load_config
from hedged.training.config import parse_config as parse_config
from hedged.training.config import shipped_config as shipped_config
from hedged.training.config import shipped_configs as shipped_configs
from hedged.training.loop import train as train
from hedged.training.run import Run as Run
