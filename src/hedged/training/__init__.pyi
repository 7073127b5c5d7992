from .build import build_data as build_data
from .config import Config as Config
from .config import RetrofitConfig as RetrofitConfig
from .config import RunConfig as RunConfig
from .config import load_config as load_config
from .config import parse_config as parse_config
from .config import shipped_config as shipped_config
from .config import shipped_configs as shipped_configs
from .loop import train as train
from .novelty import fit_novelty as fit_novelty
from .processes import gather as gather
from .run import Run as Run

__all__: list[str]
