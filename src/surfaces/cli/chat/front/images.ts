import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { extname, join, resolve as absolute } from "node:path";
import { fileURLToPath } from "node:url";
import { Fault, readProperty, type JsonValue } from "../../../../kernel/index.ts";
import { imagesOf, inputText } from "../model/chat-words.ts";

/** The most bytes of an image that is sent. */
const mostBytes = 8 * 1024 * 1024;

const types: Readonly<Record<string, string>> = {
  ".png": "image/png",
  ".jpg": "image/jpeg",
  ".jpeg": "image/jpeg",
  ".gif": "image/gif",
  ".webp": "image/webp",
};

/** Programs that write the image of the clipboard to stdout as PNG. */
const clipboardPrograms: readonly (readonly [string, readonly string[]])[] = [
  ["wl-paste", ["--type", "image/png"]],
  ["xclip", ["-selection", "clipboard", "-target", "image/png", "-out"]],
  ["pngpaste", ["-"]],
];

/** The images that a text names as `@picture.png` or `@"my picture.png"`, as content parts. */
export function imageParts(text: string, folder: string): Promise<readonly JsonValue[]> {
  return Promise.all(imageNames(text).map((name) => imagePart(absolute(folder, name))));
}

function imageNames(text: string): readonly string[] {
  const names = [...text.matchAll(/(?:^|\s)@(?:"(?<quoted>[^"\n]+)"|(?<path>\S+))/gu)].flatMap(
    ({ groups }) => groups?.["quoted"] ?? groups?.["path"] ?? [],
  );
  return names.filter(isImage);
}

/** Whether a part of an input is a text. */
export function isTextPart(part: JsonValue): boolean {
  return readProperty(part, "type") === "text";
}

/**
 * Returns the name of a pasted image path as the composer writes it. Terminals paste the path of a file that is
 * dropped on them. `undefined` if the text is not the path of an image.
 */
export function pastedImage(text: string, folder: string): string | undefined {
  const pasted = text.trim();
  if (pasted === "" || pasted.includes("\n") || pasted.length > 4_096) return undefined;
  const path = pathOf(pasted);
  return isImage(path) && existsSync(absolute(folder, path)) ? imageName(path) : undefined;
}

/**
 * Images in drafts that exist in no file of the person, such as the image of the clipboard. Their temporary files
 * are deleted when the chat ends.
 */
export class DraftImages {
  #folder: Promise<string> | undefined;
  #count = 0;

  /** Writes the image of the clipboard to a file. Returns the name of this file as the composer writes it. */
  async take(): Promise<string> {
    return this.#write("clipboard", ".png", await readClipboard());
  }

  /** Converts an input to a draft: its text, followed by a name for each image that the text does not name. */
  async draftOf(input: JsonValue): Promise<string> {
    if (!Array.isArray(input)) return inputText(input);
    const parts = input as readonly JsonValue[];
    const text = inputText(parts.filter(isTextPart));
    // The images that a text names come first, in the order of their names.
    const others = parts.filter((part) => !isTextPart(part)).slice(imageNames(text).length);
    const names = await Promise.all(
      others.map(async (part) => {
        const [image] = imagesOf([part]);
        const end = Object.entries(types).find(([, type]) => type === image?.mediaType)?.[0];
        if (image === undefined || end === undefined) return inputText([part]);
        return this.#write("queued", end, Buffer.from(image.data, "base64"));
      }),
    );
    return [...(text === "" ? [] : [text]), ...names].join("\n");
  }

  async #write(name: string, end: string, bytes: Buffer): Promise<string> {
    this.#folder ??= mkdtemp(join(tmpdir(), "reeve-chat-images-"));
    const path = join(await this.#folder, `${name}-${++this.#count}${end}`);
    await writeFile(path, bytes, { mode: 0o600 });
    return imageName(path);
  }

  async remove(): Promise<void> {
    if (this.#folder !== undefined) await rm(await this.#folder, { recursive: true, force: true });
  }
}

async function readClipboard(): Promise<Buffer> {
  let hasProgram = false;
  for (const [program, args] of clipboardPrograms) {
    const bytes = await outputOf(program, args);
    if (bytes === undefined) continue;
    hasProgram = true;
    if (bytes.length > 0) return bytes;
  }
  throw new Fault(
    "not_found",
    hasProgram
      ? "the clipboard has no image; name a file as @picture.png"
      : "no program can read images of the clipboard; install wl-paste (Wayland), xclip (X11) or pngpaste (macOS), or name a file as @picture.png",
  );
}

/**
 * Returns the output of a program. The output is empty if the program fails, for example because there is no image.
 * `undefined` if the program is not installed.
 */
function outputOf(program: string, args: readonly string[]): Promise<Buffer | undefined> {
  return new Promise((resolve) => {
    const options = { encoding: "buffer", maxBuffer: mostBytes + 1, timeout: 10_000 } as const;
    execFile(program, args, options, (error, stdout) => {
      if (error?.code === "ENOENT") resolve(undefined);
      else resolve(error === null ? stdout : Buffer.alloc(0));
    });
  });
}

async function imagePart(path: string): Promise<JsonValue> {
  let bytes: Buffer;
  try {
    bytes = await readFile(path);
  } catch (error) {
    throw new Fault("not_found", `image ${path} cannot be read: ${(error as Error).message}`);
  }
  if (bytes.length > mostBytes)
    throw new Fault("too_large", `image ${path} has ${bytes.length} bytes; at most ${mostBytes} can be sent`);
  const mediaType = types[extname(path).toLowerCase()] ?? "image/png";
  return { type: "image", mediaType, source: { kind: "base64", data: bytes.toString("base64") } };
}

function isImage(name: string): boolean {
  return types[extname(name).toLowerCase()] !== undefined;
}

/** Returns the name of a file as it is written after `@`. A path with a space is put in quotes. */
export function imageName(path: string): string {
  return /\s/u.test(path) ? `@"${path}" ` : `@${path} `;
}

/**
 * Converts a pasted path to a plain path. Terminals paste paths in quotes, with escaped spaces, or as a `file:`
 * URL.
 */
function pathOf(pasted: string): string {
  if (pasted.startsWith("file://")) {
    try {
      return fileURLToPath(pasted);
    } catch {
      // The text is no address of a file of this machine.
      return pasted;
    }
  }
  const quoted = /^(?<quote>["'])(?<path>.+)\k<quote>$/u.exec(pasted)?.groups?.["path"];
  return quoted ?? pasted.replaceAll(/\\(?=[\s()&'"\\])/gu, "");
}
