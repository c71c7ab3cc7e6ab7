"""Which image files are attached, in what form, and why others are not."""

from __future__ import annotations

import importlib.util
import io
import os
import unittest
from unittest import mock

import image_files
import skill_support

skill_support.make_importable()

import attach_image  # noqa: E402
from attach_image import formats, loading  # noqa: E402
from attach_image.errors import ImageError  # noqa: E402

WHOLE = {
    "PNG": image_files.png(),
    "JPEG": image_files.jpeg(),
    "GIF": image_files.gif(),
    "lossy WebP": image_files.webp((b"VP8 ", image_files.LOSSY)),
    "lossless WebP": image_files.webp((b"VP8L", image_files.LOSSLESS)),
    "extended WebP": image_files.webp(
        (b"VP8X", b"\x10\0\0\0" + image_files.edges(3, 2)), (b"ALPH", b"x"), (b"VP8 ", image_files.LOSSY)
    ),
}


class Formats(unittest.TestCase):
    """What the bytes of a file say."""

    def test_type_and_size_are_read_from_the_content(self) -> None:
        for name, data in WHOLE.items():
            with self.subTest(name):
                picture = formats.inspect(data)
                kind = f"image/{name.split()[-1].lower()}"
                self.assertEqual((picture.mime_type, picture.width, picture.height), (kind, 3, 2))
                self.assertEqual(picture.frames, 1)

    def test_a_file_that_ends_early_is_refused_wherever_it_ends(self) -> None:
        for name, data in WHOLE.items():
            for end in range(len(data) - 1):  # A GIF may lack its last byte, which only says that it ends.
                with self.subTest(name, end=end), self.assertRaises(ImageError):
                    formats.inspect(data[:end])

    def test_a_flipped_bit_in_a_png_is_found(self) -> None:
        data = bytearray(image_files.png())
        data[-20] ^= 1
        with self.assertRaisesRegex(ImageError, "damaged: a checksum is wrong at byte"):
            formats.inspect(bytes(data))

    def test_other_files_are_refused_with_how_they_begin(self) -> None:
        table = {
            b"": "is empty",
            b"<svg xmlns=": r"is not a PNG, JPEG, GIF or WebP image \(it begins with b'<svg xml'\)",
            b"%PDF-1.7\n...": "is not a PNG",
            b"RIFF\x04\0\0\0WAVE": "is not a PNG",
            image_files.webp((b"JUNK", b"")): "a WebP image can't begin with b'JUNK'",
            image_files.png(0, 2): "has no pixels",
            image_files.gif(frames=0): "has no frame",
            b"\xff\xd8\xff\xc0\0\x0b\x08\0\x02\0\x03\x01\x01\x11\0zz": "no JPEG marker at byte",
        }
        for data, message in table.items():
            with self.subTest(message), self.assertRaisesRegex(ImageError, message):
                formats.inspect(data)

    def test_an_animation_becomes_its_first_frame(self) -> None:
        alpha = ((b"ALPH", b"a"), (b"VP8 ", image_files.LOSSY))
        extended = (b"VP8X", b"\x10\0\0\0" + image_files.edges(3, 2))
        table = {
            "GIF": (image_files.gif(frames=3), 3, image_files.gif()),
            "lossless WebP": (
                image_files.animated_webp((b"VP8L", image_files.LOSSLESS)),
                2,
                WHOLE["lossless WebP"],
            ),
            "WebP with alpha": (image_files.animated_webp(*alpha), 2, image_files.webp(extended, *alpha)),
            # A PNG shows its first frame wherever animations are not known.
            "PNG": (image_files.png(frames=5), 5, image_files.png(frames=5)),
        }
        for name, (data, frames, still) in table.items():
            with self.subTest(name):
                picture = formats.inspect(data)
                self.assertEqual(picture.frames, frames)
                self.assertEqual(formats.first_frame(picture).data, still)


class Loading(unittest.TestCase):
    """From a path to an attachment."""

    def setUp(self) -> None:
        self.folder = skill_support.Folder()
        self.addCleanup(self.folder.close)

    def test_a_whole_image_is_taken_byte_by_byte_and_told_by_its_content(self) -> None:
        path = self.folder.write("named.jpg", image_files.png())
        image = loading.load(path)
        self.assertEqual(image.picture.data, image_files.png())
        self.assertEqual(image.summary, f"{path} (PNG, 3×2)")

    def test_an_animation_is_attached_as_a_frame_and_says_so(self) -> None:
        path = self.folder.write("a.gif", image_files.gif(frames=7))
        self.assertEqual(loading.load(path).summary, f"{path} (GIF, 3×2; the first of 7 frames)")

    def test_what_can_t_be_shown_is_refused_with_the_reason(self) -> None:
        table = {
            self.folder.write("huge.png", image_files.png(8000, 6000)): "has 8000×6000 pixels, more than 36 million",
            self.folder.write("a.txt", b"hello"): "is not a PNG",
            self.folder.path / "none.png": "does not exist",
            self.folder.path: "is not a file",
        }
        for path, message in table.items():
            with self.subTest(message), self.assertRaisesRegex(ImageError, f"{path} {message}.*nothing was attached"):
                loading.load(path)

    def test_a_file_over_the_limit_is_refused_without_pillow(self) -> None:
        # Bytes after the end of a JPEG are none of the image, but count.
        path = self.folder.write("big.jpg", image_files.jpeg() + b"\0" * loading.MAX_BYTES)
        with mock.patch.dict("sys.modules", {"PIL": None}):
            with self.assertRaisesRegex(ImageError, "no Pillow to scale it with: make it smaller first"):
                loading.load(path)

    def test_one_bad_file_means_that_none_is_attached(self) -> None:
        good = self.folder.write("a.png", image_files.png())
        outbox = self.folder.path / "displays"
        with mock.patch.dict(os.environ, {"PRIME_AGENT_KERNEL_DISPLAYS": str(outbox)}):
            with self.assertRaises(ImageError):
                attach_image.run(good, self.folder.write("b.png", b"no"))
            self.assertFalse(outbox.exists())
            attach_image.run(good, good)
            self.assertEqual(len(list(outbox.iterdir())), 2)

    def test_a_model_without_vision_is_told_before_a_file_is_read(self) -> None:
        with mock.patch.dict(os.environ, {"PRIME_AGENT_VISION": "0"}):
            with self.assertRaisesRegex(ImageError, "the model takes no images"):
                attach_image.run(self.folder.path / "none.png")

    def test_no_path_and_a_list_are_type_errors(self) -> None:
        for arguments in ((), (["a.png"],)):
            with self.subTest(arguments), self.assertRaises(TypeError):
                attach_image.run(*arguments)


# Where Pillow is missing, as in the oldest environment, there is nothing to see of it.
if importlib.util.find_spec("PIL"):
    from PIL import Image

    class Scaling(unittest.TestCase):
        """What Pillow makes of images over the limit."""

        def setUp(self) -> None:
            self.folder = skill_support.Folder()
            self.addCleanup(self.folder.close)

        def load(self, mode: str, pixel: tuple, width: int = 2400, height: int = 1200) -> loading.Image:
            """Loads a PNG of one colour that is not compressed, and so over the limit."""
            stream = io.BytesIO()
            Image.new(mode, (width, height), pixel).save(stream, "PNG", compress_level=0)
            self.assertGreater(len(stream.getvalue()), loading.MAX_BYTES)
            return loading.load(self.folder.write("big.png", stream.getvalue()))

        def test_a_large_image_becomes_a_smaller_jpeg_and_says_so(self) -> None:
            image = self.load("RGB", (200, 0, 0))
            self.assertEqual(image.notes, ["scaled down from 2400×1200 and converted to JPEG"])
            with Image.open(io.BytesIO(image.picture.data)) as decoded:
                self.assertEqual((decoded.format, decoded.size), ("JPEG", (1568, 784)))

        def test_transparency_becomes_grey_and_says_so(self) -> None:
            image = self.load("RGBA", (255, 0, 0, 0))
            self.assertEqual(image.notes[1:], ["transparency shown as grey"])
            with Image.open(io.BytesIO(image.picture.data)) as decoded:
                self.assertTrue(all(abs(value - 128) < 4 for value in decoded.getpixel((700, 300))))

        def test_an_alpha_channel_that_hides_nothing_is_no_transparency(self) -> None:
            image = self.load("RGBA", (255, 0, 0, 255))
            self.assertEqual(len(image.notes), 1)

        def test_the_first_frame_of_a_real_animation_can_be_decoded(self) -> None:
            frames = [Image.new("RGBA", (40, 30), color) for color in ((250, 0, 0, 128), (0, 0, 250, 255))]
            for kind, options in (("gif", {}), ("webp", {}), ("webp", {"lossless": True}), ("png", {})):
                with self.subTest(kind, **options):
                    path = self.folder.path / f"a.{kind}"
                    frames[0].save(path, save_all=True, append_images=frames[1:], duration=50, **options)
                    image = loading.load(path)
                    self.assertEqual(image.notes, ["the first of 2 frames"])
                    with Image.open(io.BytesIO(image.picture.data)) as decoded:
                        red, _, blue, _ = decoded.convert("RGBA").getpixel((20, 15))
                    self.assertTrue(red > 200 and blue < 50)

        def test_an_image_that_can_t_be_decoded_is_refused(self) -> None:
            path = self.folder.write("big.jpg", image_files.jpeg() + b"\0" * loading.MAX_BYTES)
            with self.assertRaisesRegex(ImageError, "can't be decoded"):
                loading.load(path)


if __name__ == "__main__":
    unittest.main()
