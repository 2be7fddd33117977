import { chmod, mkdir, writeFile } from "node:fs/promises";
import { delimiter, join } from "node:path";
import { pathToFileURL } from "node:url";
import { resetCapabilitiesCache, setCapabilities } from "@earendil-works/pi-tui";
import { describe, expect, onTestFinished, test } from "vitest";
import { blockOf } from "../../src/surfaces/cli/chat/front/chat-blocks.ts";
import { Completer } from "../../src/surfaces/cli/chat/front/completions.ts";
import { inputOf } from "../../src/surfaces/cli/chat/front/composer.ts";
import { DraftImages, pastedImage } from "../../src/surfaces/cli/chat/front/images.ts";
import { ChatModel } from "../../src/surfaces/cli/chat/model/chat-model.ts";
import { partLines } from "../../src/surfaces/cli/chat/screen/pi-screen.ts";
import { themeOf } from "../../src/surfaces/cli/chat/screen/theme.ts";
import { env, setUp } from "../surfaces/cli/model-server.ts";
import { lacksTmux, openTerminal } from "./terminal.ts";

/** A picture of one pixel. */
const pixel =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

async function pictureFolder(): Promise<string> {
  const { folder } = await setUp(() => ({ text: "" }));
  for (const name of ["lamp.png", "my lamp.png"]) await writeFile(join(folder, name), pixel, "base64");
  return folder;
}

test("a chat text that names images becomes a text part and image parts, and a missing image is refused", async () => {
  const folder = await pictureFolder();
  const image = { type: "image", mediaType: "image/png", source: { kind: "base64", data: pixel } };
  const text = 'See @lamp.png and @"my lamp.png" but not @notes.txt';
  expect(await inputOf(text, folder, ["$ ls"])).toEqual([
    { type: "text", text: `$ ls\n\n${text}` },
    image,
    image,
  ]);
  expect(await inputOf("See @notes.txt", folder, [])).toBe("See @notes.txt");
  await expect(inputOf("See @absent.png", folder, [])).rejects.toThrow(/absent\.png cannot be read/u);
});

test("a chat input that returns to the composer keeps its images, whether its text names them or not", async () => {
  const folder = await pictureFolder();
  const images = new DraftImages();
  const [named, unnamed, strange] = ["@lamp.png and @notes.txt", "Look", { type: "file", mediaType: "a/b" }];
  const image = { type: "image", mediaType: "image/png", source: { kind: "base64", data: pixel } };
  expect(await images.draftOf(await inputOf(named, folder, []))).toBe(named);
  expect(await images.draftOf("Look")).toBe("Look");
  const draft = await images.draftOf([{ type: "text", text: unnamed }, image, strange]);
  expect(draft).toMatch(/^Look\n@\S+\.png \n\[file, a\/b\]$/u);
  expect(await inputOf(draft, folder, [])).toEqual([{ type: "text", text: draft }, image]);
  await images.remove();
  await expect(inputOf(draft, folder, [])).rejects.toThrow(/cannot be read/u);
});

test("an image path that the chat has completed is sent, also if the path has spaces", async () => {
  const folder = await pictureFolder();
  await mkdir(join(folder, "new lamps"));
  await writeFile(join(folder, "new lamps/red.png"), pixel, "base64");
  const completer = new Completer(folder);
  const complete = async (text: string): Promise<string> => {
    const { prefix, items } = (await completer.complete(text, true)) ?? { prefix: "", items: [] };
    return `${text.slice(0, text.length - prefix.length)}${items[0]?.value}`;
  };
  expect(await complete("See @my")).toBe('See @"my lamp.png" ');
  expect(await complete("See @lamp")).toBe("See @lamp.png ");
  expect(await complete("See @new")).toBe('See @"new lamps/');
  const text = await complete('See @"new lamps/r');
  expect(text).toBe('See @"new lamps/red.png" ');
  expect(await complete("See my")).toBe("See my lamp.png ");
  const image = { type: "image", mediaType: "image/png", source: { kind: "base64", data: pixel } };
  expect(await inputOf(text, folder, [])).toEqual([{ type: "text", text }, image]);
});

test("the chat turns the pasted path of an image into its name, and leaves every other paste unchanged", async () => {
  const folder = await pictureFolder();
  const spaced = join(folder, "my lamp.png");
  expect(pastedImage("lamp.png\n", folder)).toBe("@lamp.png ");
  for (const path of [`'${spaced}'`, spaced.replace(" ", "\\ "), pathToFileURL(spaced).href])
    expect(pastedImage(path, folder)).toBe(`@"${spaced}" `);
  for (const text of ["absent.png", "notes.txt", "lamp.png\nlamp.png", "", "file://%"])
    expect(pastedImage(text, folder)).toBeUndefined();
});

describe("an image in a chat conversation", () => {
  test.for([
    { images: "kitty", drawn: "\u{1b}_G" },
    { images: "iterm2", drawn: "\u{1b}]1337" },
    { images: null, drawn: undefined },
  ] as const)(
    "a chat names an image in the conversation, and draws it in a terminal with the protocol $images",
    ({ images, drawn }) => {
      setCapabilities({ images, trueColor: true, hyperlinks: false });
      onTestFinished(resetCapabilitiesCache);
      const chat = new ChatModel();
      const source = { kind: "base64", data: pixel };
      chat.say([
        { type: "text", text: "Look" },
        { type: "image", mediaType: "image/png", source },
      ]);
      const theme = themeOf("none");
      const lines = chat.items
        .flatMap((item) => blockOf(item, { theme, isOpen: false, showsImages: true }).parts())
        .flatMap((part) => partLines(part, 80, theme));
      expect(lines.slice(0, 3)).toEqual(["", "❯ Look", "  [image, image/png]"]);
      expect(lines.some((line) => drawn !== undefined && line.includes(drawn))).toBe(drawn !== undefined);
      expect(drawn === undefined ? lines.length : 3).toBe(3);
    },
  );
});

describe.skipIf(lacksTmux)("images in the composer of a chat", () => {
  test("a person pastes the path of an image or an image of the clipboard into a chat, and learns which program is missing", async () => {
    const { folder, url, requests } = await setUp(() => ({ text: "Seen." }));
    await writeFile(join(folder, "my lamp.png"), pixel, "base64");
    const programs = join(folder, "programs");
    await mkdir(programs);
    const clipboard = join(programs, "wl-paste");
    const terminal = await openTerminal({ size: "200x50", cwd: folder, env: env(url) });
    // The programs of the machine are left out: each of them would read the clipboard of its desktop.
    await terminal.type(`PATH='${programs}'`);
    await terminal.press("Enter");
    await terminal.reeve("chat");
    await terminal.shows(/gpt-4o/u);
    await terminal.press("C-v");
    await terminal.shows(/install wl-paste \(Wayland\), xclip \(X11\) or pngpaste/u);
    await writeFile(clipboard, "#!/bin/sh\nexit 1\n");
    await chmod(clipboard, 0o700);
    await terminal.press("C-v");
    await terminal.shows(/the clipboard has no image/u);
    await writeFile(
      clipboard,
      `#!/bin/sh\nPATH=${process.env["PATH"] ?? delimiter}\nbase64 -d <<'END'\n${pixel}\nEND\n`,
    );
    await terminal.press("C-v");
    await terminal.shows(/\n @\S+clipboard-1\.png/u);
    await terminal.paste("my\\ lamp.png");
    await terminal.shows(/@"my lamp\.png"/u);
    await terminal.press("Enter");
    await terminal.shows(/Seen\.[^]*Done/u, /\[image, image\/png\]\n\s+\[image, image\/png\]/u);
    expect(JSON.stringify(requests[0]).split(`data:image/png;base64,${pixel}`)).toHaveLength(3);
  });
});
