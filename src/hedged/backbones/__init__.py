"""From images to features. A backbone is any `nn.Module` with an attribute `features`, the width of what it returns."""

from hedged.backbones.frozen import Frozen as Frozen
from hedged.backbones.frozen import FrozenHidden as FrozenHidden
from hedged.backbones.mobilenet import MobileNet as MobileNet
from hedged.backbones.shallow import Shallow as Shallow
from hedged.backbones.shallow import ShallowHidden as ShallowHidden
from hedged.backbones.wrapped import Wrapped as Wrapped
from hedged.backbones.wrapped import timm_backbone as timm_backbone
