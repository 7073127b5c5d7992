"""The service: a model and a store behind HTTP, with a page for people. `hedged serve RUN STORE` starts it.

| file | what it is about |
|---|---|
| `settings` | what is served, and within which limits |
| `keys` | who may read and who may write: keys with roles, kept as hashes |
| `desk` | the model and the store in one thread, which takes concurrent requests together |
| `tasks` | what the desk can be asked about inputs: embed, match, search, identify |
| `flatten` | embeddings in a plane |
| `records` | slow reading and all writing, each in a thread of its own: items, map, enrolment |
| `audits` | what may be wrong with the store, in a thread of its own |
| `bodies` | inputs in a request: uploaded images, or vectors as JSON |
| `places` | what clients are told instead of paths and addresses |
| `pictures` | what items look like, from one folder alone |
| `guard` | limits on bodies, rates and times; headers; metrics |
| `connection` | limits on clients that are slow |
| `refusals` | what is refused, with status and words |
| `logs` | lines of JSON |
| `answers` | what calls answer, for the OpenAPI description |
| `examples` | an example of each answer |
| `calls` | the calls |
| `service` | all that calls work with |
| `app` | calls, page, errors and their description, as one application |
| `process` | one process or several, and a graceful stop |
| `page/` | the page: no build step, nothing from elsewhere |

The names are imported on first use: they need the extra `hedged[serve]`, and that of the store.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
