import { mkdtemp, mkdir, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { expect, test } from "vitest";
import { Agent } from "../../src/entries/index.ts";
import { experiment, jsonLines } from "../../src/entries/experiments.ts";
import type { ModelRequest } from "../../src/kernel/index.ts";
import { withRuntime } from "../assembly/with-runtime.ts";
import { answering } from "./answering-model.ts";

function exact({ output, expected }: { readonly output: unknown; readonly expected: unknown }): boolean {
  return output === expected;
}

const clerk = new Agent({ name: "clerk", model: answering(() => "Paris") });

async function fileOf(...lines: readonly string[]): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "reeve-cases-"));
  const file = join(folder, "cases.jsonl");
  await writeFile(file, lines.join("\n"));
  return file;
}

test("a wrong line of a case file is an error that names the file and the line", async () => {
  const good = '{"id":"a","input":"x"}';
  for (const [lines, at, message] of [
    [[good, "", "{"], 3, "is not JSON"],
    [[good, "[1]"], 2, "expected an object with id and input"],
    [[good, '{"id":7,"input":"x"}'], 2, "invalid id 7"],
    [[good, '{"id":"b"}'], 2, "invalid input"],
    [[good, '{"id":"b","input":"x","expect":1}'], 2, 'unknown option "expect"'],
    [[good, '{"id":"b","input":"x","tags":"smoke"}'], 2, "invalid tags"],
  ] as const) {
    const file = await fileOf(...lines);
    const failure = await jsonLines(file)().catch((error: unknown) => String(error));
    expect(failure).toContain(`${file}:${at}`);
    expect(failure).toContain(message);
  }
  const file = await fileOf(good, '{"id":"b","input":"x"}', good);
  const twice = experiment({ name: "twice", agent: clerk, cases: jsonLines(file), scorers: [exact] });
  await expect(twice.countTrials()).rejects.toThrow(
    `duplicate case id "a" of experiment twice: ${file}:1 and ${file}:3 have it`,
  );
});

test("the path of a case file starts at the folder of the calling file, or is an address", async () => {
  await expect(jsonLines("./no-such-cases.jsonl")()).rejects.toThrow(
    join(import.meta.dirname, "no-such-cases.jsonl"),
  );
  const file = await fileOf('{"id":"a","input":"x","tags":["t"],"expected":{"b":1}}');
  expect(await jsonLines(pathToFileURL(file))()).toEqual([
    { id: "a", input: "x", tags: ["t"], expected: { b: 1 } },
  ]);
});

test("the files of an experiment case are attached to its input, from the folder of the case file", () =>
  withRuntime(async (runtime) => {
    const file = await fileOf('{"id":"a","input":"What is it?","files":["media/dot.png","media/note.txt"]}');
    await mkdir(join(file, "..", "media"));
    const png = Buffer.from("\x89PNG\r\n\x1a\n0000", "latin1");
    await writeFile(join(file, "..", "media", "dot.png"), png);
    await writeFile(join(file, "..", "media", "note.txt"), "a dot");
    const asked: ModelRequest[] = [];
    const agent = clerk.with({
      model: answering((request) => {
        asked.push(request);
        return "A dot";
      }),
    });
    const { results } = await experiment({
      name: "files",
      agent,
      cases: jsonLines(file),
      scorers: [exact],
    }).run({ runtime });
    expect(results[0]?.output).toBe("A dot");
    expect(asked[0]?.messages.at(-1)?.content).toMatchObject([
      { type: "text", text: "What is it?" },
      { type: "image", mediaType: "image/png", source: { kind: "base64", data: png.toString("base64") } },
      { type: "file", mediaType: "text/plain", filename: "note.txt" },
    ]);
    const lost = experiment({
      name: "lost",
      agent,
      cases: [{ id: "a", input: "x", files: ["/no/such/file"] }],
      scorers: [exact],
    });
    await expect(lost.countTrials()).rejects.toThrow(
      "entry 1 of cases of experiment lost: the attached file /no/such/file cannot be read",
    );
  }));
