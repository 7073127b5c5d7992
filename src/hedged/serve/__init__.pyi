from .app import create_app as create_app
from .keys import Keys as Keys
from .keys import Role as Role
from .settings import Limits as Limits
from .settings import Settings as Settings

__all__: list[str]
