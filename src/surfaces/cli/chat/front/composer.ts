import { spawn } from "node:child_process";
import { appendFile, mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { extname, join, resolve as absolute } from "node:path";
import { reeveHome } from "../../../../capabilities/files/reeve-home.ts";
import { Fault, type JsonValue } from "../../../../kernel/index.ts";

/** The most texts that arrow keys and the search bring back. */
const mostKept = 500;
/** The most bytes of the output of a command that the model gets. */
const mostOutput = 50_000;
const mostImageBytes = 8 * 1024 * 1024;

const imageTypes: Readonly<Record<string, string>> = {
  ".png": "image/png",
  ".jpg": "image/jpeg",
  ".jpeg": "image/jpeg",
  ".gif": "image/gif",
  ".webp": "image/webp",
};

/** The texts that a person has sent, in every conversation of every folder. Only the person may read the file. */
export class PromptHistory {
  readonly #path = join(reeveHome(), "chat-history.jsonl");
  #texts: string[] = [];

  /** The texts, the oldest first. */
  get texts(): readonly string[] {
    return this.#texts;
  }

  async load(): Promise<void> {
    let lines: readonly string[];
    try {
      lines = (await readFile(this.#path, "utf8")).trimEnd().split("\n");
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ENOENT") return;
      throw error;
    }
    this.#texts = lines.slice(-mostKept).flatMap(textOfLine);
    // The file is shortened now and then, so that it stays small.
    if (lines.length > 4 * mostKept)
      await writeFile(this.#path, this.#texts.map((text) => `${JSON.stringify(text)}\n`).join(""), {
        mode: 0o600,
      });
  }

  async add(text: string): Promise<void> {
    if (this.#texts.at(-1) === text) return;
    this.#texts.push(text);
    await mkdir(reeveHome(), { recursive: true });
    await appendFile(this.#path, `${JSON.stringify(text)}\n`, { mode: 0o600 });
  }
}

function textOfLine(line: string): readonly string[] {
  try {
    const text: unknown = JSON.parse(line);
    return typeof text === "string" ? [text] : [];
  } catch {
    // A line that a dying process has cut.
    return [];
  }
}

/**
 * The input that a text becomes: images that it names as `@picture.png` become parts, and the outputs of commands stand before
 * it.
 */
export async function inputOf(text: string, folder: string, outputs: readonly string[]): Promise<JsonValue> {
  const whole = [...outputs, text].join("\n\n");
  const names = [...text.matchAll(/(?:^|\s)@(?<path>\S+)/gu)].flatMap(
    (match) => match.groups?.["path"] ?? [],
  );
  const images = names.filter((name) => imageTypes[extname(name).toLowerCase()] !== undefined);
  if (images.length === 0) return whole;
  const parts = await Promise.all(images.map((name) => imagePart(absolute(folder, name))));
  return [{ type: "text", text: whole }, ...parts];
}

async function imagePart(path: string): Promise<JsonValue> {
  let bytes: Buffer;
  try {
    bytes = await readFile(path);
  } catch (error) {
    throw new Fault("not_found", `image ${path} cannot be read: ${(error as Error).message}`);
  }
  if (bytes.length > mostImageBytes)
    throw new Fault(
      "too_large",
      `image ${path} has ${bytes.length} bytes; at most ${mostImageBytes} can be sent`,
    );
  const mediaType = imageTypes[extname(path).toLowerCase()] ?? "image/png";
  return { type: "image", mediaType, source: { kind: "base64", data: bytes.toString("base64") } };
}

/** Runs a command of the person in the shell, with the person's rights. Resolves to its output and how it ended. */
export function runShell(command: string, folder: string, signal: AbortSignal): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = spawn(command, {
      cwd: folder,
      shell: process.env["SHELL"] ?? true,
      stdio: ["ignore", "pipe", "pipe"],
      signal,
    });
    let output = "";
    let left = 0;
    const take = (piece: Buffer): void => {
      const text = piece.toString("utf8");
      const room = mostOutput - output.length;
      output += text.slice(0, Math.max(0, room));
      left += Math.max(0, text.length - room);
    };
    child.stdout.on("data", take);
    child.stderr.on("data", take);
    child.on("error", (error) => (signal.aborted ? resolve(`${output}\n[stopped]`) : reject(error)));
    child.on("close", (code, killed) => {
      const cut = left === 0 ? "" : `\n[${left} more characters]`;
      const end = code === 0 ? "" : `\n[exit code ${code ?? killed}]`;
      resolve(`${output.trimEnd()}${cut}${end}`);
    });
  });
}

/** Lets the person write a text in an editor. Returns the text as the person has left it. */
export async function editText(text: string, editor: string): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "reeve-chat-"));
  try {
    const path = join(folder, "prompt.md");
    await writeFile(path, text, { mode: 0o600 });
    await new Promise<void>((resolve, reject) => {
      const child = spawn(`${editor} "$REEVE_PROMPT"`, {
        shell: true,
        stdio: "inherit",
        env: { ...process.env, REEVE_PROMPT: path },
      });
      child.on("error", reject);
      child.on("close", () => resolve());
    });
    return (await readFile(path, "utf8")).replace(/\n$/u, "");
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
