"""What users bring: vectors, images, lists of pairs and photos, index files of n-digit-mnist, tables of results."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, final

import numpy as np
from fuzz.seeds import FileTarget
from PIL import Image, features

from hedged._decode import read_middle
from hedged.data import offline_digits, read_pairs
from hedged.data.features.files import read_features
from hedged.data.inputs import image_batches
from hedged.data.ndigit.dataset import NDigit
from hedged.data.ndigit.idx import parse_idx
from hedged.data.ndigit.index_file import read_index, write_index
from hedged.data.photos.cache import decode_all
from hedged.data.photos.listing import list_photos


@final
class FeatureFiles(FileTarget):
    """.npy, .npz and .parquet, with labels beside or in them."""

    name = "vectors"

    def write_seeds(self, folder: Path) -> list[Path]:
        import pyarrow as pa  # type: ignore[import-untyped]
        from pyarrow import parquet

        random = np.random.default_rng(0)
        x, words, numbers = (
            random.normal(size=(20, 12)).astype(np.float32),
            [f"id{i % 5}" for i in range(20)],
            range(20),
        )
        places = {name: folder / name for name in ("npy", "text", "npz", "packed", "parquet", "half")}
        for place in places.values():
            place.mkdir()
        np.save(places["npy"] / "vectors.npy", x)
        np.save(places["npy"] / "labels.npy", np.array(numbers))
        np.save(places["text"] / "vectors.npy", x.astype(np.float64))
        (places["text"] / "labels.txt").write_text("\n".join(words), encoding="utf-8")
        np.savez(places["npz"] / "vectors.npz", features=x, labels=np.array(words), ids=np.array(numbers))
        np.savez_compressed(
            places["packed"] / "vectors.npz", features=x, label=np.array(numbers), split=np.array(words)
        )
        np.savez(places["half"] / "vectors.npz", feature=x.astype(np.float16), labels=np.array(words, "S8"))
        table = pa.table({"features": list(x), "labels": words, "ids": list(numbers), "other": [None] * 20})
        parquet.write_table(table, places["parquet"] / "vectors.parquet")
        return sorted(folder.iterdir())

    def use(self, folder: Path) -> None:
        (path,) = folder.glob("vectors.*")
        table = read_features(path, next(folder.glob("labels.*"), None))
        assert table.vectors.dtype == np.float32
        assert np.isfinite(table.vectors).all()
        assert all(words is None or words.shape == (len(table.vectors),) for words in table[1:])


@final
class Images(FileTarget):
    """Every format that is read."""

    name = "images"

    def write_seeds(self, folder: Path) -> list[Path]:
        pixels = np.random.default_rng(0).integers(0, 256, (28, 56, 3), dtype=np.uint8)
        pixels[:, :20] = 128
        colours = Image.fromarray(pixels)
        grey, clear = colours.convert("L"), colours.convert("RGBA")
        deep = Image.fromarray(pixels[..., 0].astype(np.uint16) * 257)
        exif = Image.Exif()
        exif[0x0112] = 6
        kinds: dict[str, tuple[Image.Image, dict[str, Any]]] = {
            "a.png": (colours, {}),
            "grey.png": (grey, {}),
            "deep.png": (deep, {}),
            "clear.png": (clear, {}),
            "palette.png": (colours.quantize(16), {"transparency": 3}),
            "a.jpg": (colours.transpose(Image.Transpose.ROTATE_90), {"exif": exif}),
            "progressive.jpg": (grey, {"progressive": True}),
            "ink.jpg": (colours.convert("CMYK"), {}),
            "a.bmp": (colours, {}),
            "a.gif": (colours, {"save_all": True, "append_images": [colours.rotate(90)]}),
            "a.tiff": (colours, {"compression": "tiff_lzw"}),
            "deflated.tiff": (clear, {"compression": "tiff_deflate"}),
            "deep.tiff": (deep, {}),
            "a.ppm": (colours, {}),
            "a.webp": (colours, {"lossless": True}),
            "lossy.webp": (clear, {}),
        }
        if features.check("jpg_2000"):
            kinds["a.jp2"] = (colours, {})
        if features.check("avif"):
            kinds["a.avif"] = (colours, {})
        for name, (image, options) in kinds.items():
            (folder / name).mkdir()
            image.save(folder / name / name, **options)
        return sorted(folder.iterdir())

    def use(self, folder: Path) -> None:
        (path,) = folder.iterdir()
        (resized,) = image_batches([path], (3, 24, 24), 1, resize=24)
        assert resized.shape == (1, 3, 24, 24)
        list(image_batches([path], (1, 28, 56), 1))


@final
class Pairs(FileTarget):
    """Lists of pairs, and of photos."""

    name = "pairs"

    def write_seeds(self, folder: Path) -> list[Path]:
        import pyarrow as pa
        from pyarrow import parquet

        contents = {
            "pairs.csv": "pathA,pathB,same\na.png,b.png,1\nc.png,d.png,0\na.png,c.png,different\n",
            "pairs.txt": "2\t1\nAda\t1\t2\nRex\t1\tAda\t3\nRex 1 4\n",
            "photos.csv": "path,label,split\na.png,Ada,train\nb/é.png,Rex,test\n",
        }
        for name, text in contents.items():
            (folder / name).mkdir()
            (folder / name / name).write_text(text, encoding="utf-8")
        tables = {
            "pairs.parquet": {"pathA": ["a", "b"], "pathB": ["c", "d"], "same": [True, False]},
            "photos.parquet": {"path": ["a", "b"], "label": ["Ada", "Rex"]},
        }
        for name, columns in tables.items():
            (folder / name).mkdir()
            parquet.write_table(pa.table(columns), folder / name / name)
        return sorted(folder.iterdir())

    def use(self, folder: Path) -> None:
        (path,) = folder.iterdir()
        if path.stem == "pairs":
            pairs = read_pairs(path)
            assert len(pairs.first) == len(pairs.second) == len(pairs.matches)
        else:
            listing = list_photos(path)
            assert len(listing.paths) == len(listing.identities)


@final
class DigitFiles(FileTarget):
    """Index files of n-digit-mnist, and the digits' own format."""

    name = "digits"

    def write_seeds(self, folder: Path) -> list[Path]:
        import torch

        self._digits = offline_digits("test")
        zeros, ones = ((self._digits.labels == i).nonzero().flatten()[:4] for i in (0, 1))
        ids = torch.cat([torch.stack([zeros, ones], 1), torch.stack([ones, zeros], 1)])
        (folder / "index").mkdir()
        write_index(folder / "index" / "index.npz", NDigit(self._digits, ids))
        (folder / "idx").mkdir()
        header = bytes([0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 28, 0, 0, 0, 28])
        (folder / "idx" / "images.idx").write_bytes(header + self._digits.images[:2].numpy().tobytes())
        return sorted(folder.iterdir())

    def use(self, folder: Path) -> None:
        (path,) = folder.iterdir()
        if path.suffix == ".npz":
            read_index(path, self._digits)
        else:
            parse_idx(path.read_bytes(), dimensions=3, name=path.name)


@final
class PhotoCaches(FileTarget):
    """Decoded photos in the cache."""

    name = "photo-caches"

    def write_seeds(self, folder: Path) -> list[Path]:
        photos = folder / "seed" / "photos"
        photos.mkdir(parents=True)
        for number in range(3):
            pixels = np.random.default_rng(number).integers(0, 256, (12, 12, 3), dtype=np.uint8)
            Image.fromarray(pixels).save(photos / f"{number}.png")
        return [folder / "seed"]

    def damage(self, random: Any, folder: Path) -> None:
        photos = folder / "photos"
        photos.mkdir()
        for name, content in self._seeds[0].items():
            (folder / name).write_bytes(content)
        decode_all(sorted(photos.iterdir()), 8, folder / "cache")
        from fuzz.formats import damaged

        files = sorted(path for path in (folder / "cache").rglob("*") if path.is_file())
        chosen = random.choice(files)
        chosen.write_bytes(damaged(random, chosen.name, chosen.read_bytes()))

    def use(self, folder: Path) -> None:
        paths = sorted((folder / "photos").iterdir())
        decoded = decode_all(paths, 8, folder / "cache")
        assert not decoded.broken
        np.testing.assert_array_equal(decoded.pixels[np.arange(3)], [read_middle(path, 8) for path in paths])


@final
class ResultTables(FileTarget):
    """Tables of the paper as they were written, for `hedged paper show`."""

    name = "results"

    def write_seeds(self, folder: Path) -> list[Path]:
        root = Path(__file__).parents[2] / "results" / "paper"
        for number, path in enumerate(sorted(root.glob("*.json"))[:4]):
            (folder / str(number)).mkdir()
            cells = json.loads(path.read_text(encoding="utf-8"))[:4]
            (folder / str(number) / "main-task.json").write_text(json.dumps(cells), encoding="utf-8")
        return sorted(folder.iterdir())

    def use(self, folder: Path) -> None:
        from hedged.paper.page import load_cells, rows

        rows(load_cells(folder, "main-task"))
