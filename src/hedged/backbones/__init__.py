"""From images to features. A backbone is any `nn.Module` with an attribute `features`, the width of what it returns."""

from hedged.backbones.mobilenet import MobileNet as MobileNet
from hedged.backbones.shallow import Shallow as Shallow
from hedged.backbones.shallow import ShallowHidden as ShallowHidden
