"""Make vectors of three more kinds, from what Debian packages hold: to try `Retrofit` on what it was not made with.

    python -m tools.make_other_vectors voices --out voices.npz       # espeak-ng, bible-kjv; pip: Resemblyzer, librosa
    python -m tools.make_other_vectors verses --out verses.npz       # bible-kjv; pip: as for texts in make_vectors
    python -m tools.make_other_vectors typefaces --out typefaces.npz # fontconfig and fonts; pip: as for photos there

*voices*: speakers are the variants of espeak-ng, each with two accents, twelve sentences of each, by Resemblyzer.
*verses*: who is the same are verses of a chapter, a weak likeness, by all-MiniLM-L6-v2. *typefaces*: pairs of words in
the regular fonts that are installed, by EfficientNet-lite0, so results depend on which those are. None of them belongs
to hedged. The files are those that tools/measure_real.py takes.
"""

from __future__ import annotations

import argparse
import io
import random
import re
import subprocess
import wave
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from hedged._progress import progress
from tools.make_vectors import (
    SIDE,
    Arrays,
    degraded_photo,
    degraded_text,
    in_batches,
    photo_features,
    sentence_encoder,
)

Sound = NDArray[np.float32]
RATE = 16_000
ACCENTS = ("en-us", "en-gb", "en-gb-scotland", "en-029", "en-gb-x-rp", "en-gb-x-gbclan")
SENTENCES, VERSES, PICTURES = 12, 12, 14  # of an identity
CHAPTERS, FONTS = 420, 260


def chapters() -> dict[tuple[str, int], list[str]]:
    """The verses of every chapter, by book and number."""
    told = subprocess.run(["bible", "-f", "gen1:1-rev22:21"], capture_output=True, text=True, check=True).stdout
    found: dict[tuple[str, int], list[str]] = {}
    for line in told.splitlines():
        if verse := re.match(r"(\w+?)(\d+):(\d+) (.*)", line):
            found.setdefault((verse[1], int(verse[2])), []).append(verse[4])
    return found


def verses() -> Arrays:
    """Twelve verses of 420 chapters; every third chapter is tested."""
    every, rng = chapters(), random.Random(0)
    names = [name for name, of in every.items() if len(of) >= VERSES]
    rng.shuffle(names)
    chosen = [(i, text) for i, name in enumerate(names[:CHAPTERS]) for text in rng.sample(every[name], VERSES)]
    seen = ((text, degraded_text(text, rng)) for _, text in chosen)
    clean, poor = in_batches(seen, len(chosen), sentence_encoder())
    whose = np.array([i for i, _ in chosen])
    return {"X": clean, "poor": poor, "y": whose, "test": whose % 3 == 0}


def voices() -> Arrays:
    """Twelve sentences of each variant and accent of espeak-ng; every fourth speaker is tested."""
    import librosa  # type: ignore[import-not-found]
    from resemblyzer import VoiceEncoder  # type: ignore[import-not-found]

    encoder, rng, noise = VoiceEncoder("cpu", verbose=False), random.Random(1), np.random.default_rng(1)
    listed = subprocess.run(["espeak-ng", "--voices=variant"], capture_output=True, text=True, check=True).stdout
    variants = sorted(set(re.findall(r"!v/(\S+(?: \S+)*)", listed)))
    speakers = [(accent, variant) for variant in variants for accent in rng.sample(ACCENTS, 2)]
    lines = [verse[:70] for of in chapters().values() for verse in of if 50 < len(verse) < 90]
    clean: list[Sound] = []
    poor: list[Sound] = []
    whose = []
    with progress("Speakers", len(speakers)) as update:
        for i, (accent, variant) in enumerate(speakers):
            for _ in range(SENTENCES):
                spoken, rate = _spoken(f"{accent}+{variant}", rng.choice(lines), rng.randint(130, 200))
                if len(spoken) < rate:
                    continue
                sound = librosa.resample(spoken, orig_sr=rate, target_sr=RATE, res_type="polyphase")
                for found, one in ((clean, sound), (poor, degraded_sound(sound, rng, noise))):
                    found.append(encoder.embed_utterance(one / (np.abs(one).max() + 1e-6)))
                whose.append(i)
            update(i + 1)
    y = np.array(whose)
    return {"X": np.array(clean), "poor": np.array(poor), "y": y, "test": y % 4 == 0}


def _spoken(voice: str, text: str, speed: int) -> tuple[Sound, int]:
    """What a voice says, and at which rate it is sampled."""
    made = subprocess.run(["espeak-ng", "-v", voice, "-s", str(speed), "--stdout", text], capture_output=True)
    with wave.open(io.BytesIO(made.stdout)) as file:
        samples = np.frombuffer(file.readframes(file.getnframes()), np.int16)
        return np.asarray(samples, np.float32) / np.float32(32768), file.getframerate()


def degraded_sound(sound: Sound, rng: random.Random, noise: np.random.Generator) -> Sound:
    """The sound with noise, cut short or muffled, by a strength drawn from (0, 1)."""
    strength, how = rng.random(), rng.choice(["noise", "cut", "low"])
    if how == "noise":
        noisy: Sound = sound + noise.normal(size=len(sound)).astype(np.float32) * sound.std() * (0.2 + 3 * strength)
        return noisy
    if how == "cut":
        kept = int(RATE * (0.25 + 1.5 * (1 - strength) ** 2))
        start = rng.randint(0, max(len(sound) - kept, 1))
        return sound[start : start + kept]
    width = int(8 + 20 * strength)
    muffled: Sound = np.convolve(sound, np.ones(width) / width, "same").astype(np.float32)
    return muffled


def typefaces() -> Arrays:
    """Pictures of two words in each regular font with Latin letters; every third font is tested."""
    listed = subprocess.run(["fc-list", ":lang=en", "file", "family", "style"], capture_output=True, text=True).stdout
    fonts: dict[str, str] = {}
    for line in sorted(line for line in listed.splitlines() if ": " in line):
        file, rest = line.split(": ", 1)
        style = rest.split("style=")[-1].split(",")[0].lower()
        if Path(file).suffix.lower() in (".ttf", ".otf") and style in ("regular", "book", "roman", "medium", "normal"):
            fonts.setdefault(rest.split(":")[0].split(",")[0], file)
    rng, chosen = random.Random(2), sorted(fonts.items())
    rng.shuffle(chosen)
    chosen = chosen[:FONTS]
    words = sorted({w for of in chapters().values() for verse in of for w in re.findall(r"[A-Za-z]{4,9}", verse)})

    def seen() -> Iterator[tuple[Image.Image, Image.Image]]:
        for _, file in chosen:
            font = ImageFont.truetype(file, 44)
            for _ in range(PICTURES):
                picture = Image.new("RGB", (SIDE, SIDE), (255, 255, 255))
                pen = ImageDraw.Draw(picture)
                for top in (rng.randint(5, 30), rng.randint(75, 100)):
                    pen.text((6, top), rng.choice(words), font=font, fill=(0, 0, 0))
                yield picture, degraded_photo(picture, rng)

    clean, poor = in_batches(seen(), len(chosen) * PICTURES, photo_features())
    y = np.repeat(np.arange(len(chosen)), PICTURES)
    return {"X": clean, "poor": poor, "y": y, "test": y % 3 == 0}


def main() -> None:
    made: dict[str, Callable[[], dict[str, Any]]] = {"voices": voices, "verses": verses, "typefaces": typefaces}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kind", choices=list(made))
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    np.savez(args.out, **made[args.kind]())


if __name__ == "__main__":
    main()
