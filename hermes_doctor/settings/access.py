"""stub"""
from hermes_doctor.settings.world import World
class Access: ...
def accesses(world: World) -> list[Access]:
    return []
