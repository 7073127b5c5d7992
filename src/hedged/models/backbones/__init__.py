"""From inputs to features, one file a family: a `Backbone`, and beside it its section of a config, a `ModelConfig`.

To add one, write a file with both. A section is known by the name in its key `backbone` once its file is imported: list
it here.
"""

from hedged.models.backbones.backbone import Backbone as Backbone
from hedged.models.backbones.mobilenet import MobileNet as MobileNet
from hedged.models.backbones.mobilenet import MobileNetConfig as MobileNetConfig
from hedged.models.backbones.shallow import Shallow as Shallow
from hedged.models.backbones.shallow import ShallowConfig as ShallowConfig
from hedged.models.backbones.shallow import ShallowHidden as ShallowHidden
from hedged.models.backbones.shallow import ShallowHiddenConfig as ShallowHiddenConfig
from hedged.models.backbones.vectors import Vectors as Vectors
from hedged.models.backbones.vectors import VectorsConfig as VectorsConfig
from hedged.models.backbones.wrapped import ModuleConfig as ModuleConfig
from hedged.models.backbones.wrapped import TimmConfig as TimmConfig
from hedged.models.backbones.wrapped import Wrapped as Wrapped
from hedged.models.backbones.wrapped import timm_backbone as timm_backbone
