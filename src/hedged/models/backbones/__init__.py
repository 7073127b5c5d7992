"""From images to features. A backbone is any `nn.Module` with an attribute `features`, the width of what it returns."""

from hedged.models.backbones.mobilenet import MobileNet as MobileNet
from hedged.models.backbones.shallow import Shallow as Shallow
from hedged.models.backbones.shallow import ShallowHidden as ShallowHidden
from hedged.models.backbones.vectors import Frozen as Frozen
from hedged.models.backbones.vectors import FrozenHidden as FrozenHidden
from hedged.models.backbones.wrapped import Wrapped as Wrapped
from hedged.models.backbones.wrapped import timm_backbone as timm_backbone
