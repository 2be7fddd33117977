import { describe, expect, test } from "vitest";
import {
  fileValidator,
  type FileValidatorOptions,
} from "../../../../src/agents/interception/middleware/index.ts";
import type { JsonObject } from "../../../../src/kernel/index.ts";
import { resultText, toolScene, type ToolAnswer } from "./contexts.ts";

async function validate(options: FileValidatorOptions, input: JsonObject, answer: ToolAnswer = "ok") {
  const scene = toolScene([answer], { input });
  const result = await scene.call([fileValidator(options)]);
  return { said: resultText(result), isError: result?.isError, called: scene.calls.length };
}

describe("fileValidator()", () => {
  const roots = ["/srv/data"];

  test.for([
    "/srv/data/a.txt",
    "/srv/data",
    "/srv/data/sub/../a.txt",
    "a.txt",
    "sub/../a.txt",
    "./a.txt",
    "/srv//data/./a.txt",
    " /srv/data/a.txt",
    "https://host.example/etc/passwd",
  ])("fileValidator() lets the path %s inside the root through", async (path) => {
    expect(await validate({ roots }, { path })).toEqual({ said: "ok", isError: false, called: 1 });
  });

  test.for([
    "/etc/passwd",
    "/srv/data/../secret",
    "/srv/database/a.txt",
    "../a.txt",
    "sub/../../a.txt",
    "..\\a.txt",
    "\\srv\\other",
    "C:\\Windows",
    "~/.ssh/id_rsa",
    "file:///etc/passwd",
    " /etc/passwd",
    "\tfile:///etc/passwd",
    "https://../../etc/passwd",
    "a.txt\0.png",
  ])("fileValidator() refuses the path %j outside the root and does not call the tool", async (path) => {
    const { said, isError, called } = await validate({ roots }, { path });
    expect(said).toMatch(/^\[refused: .* is outside of \/srv\/data\]$/u);
    expect({ isError, called }).toEqual({ isError: true, called: 0 });
  });

  test("fileValidator() checks lists of paths, the arguments named by pathArguments, and file extensions", async () => {
    expect((await validate({ roots }, { paths: ["a", "/etc/passwd"] })).called).toBe(0);
    expect((await validate({ roots, pathArguments: ["target"] }, { target: "/etc" })).called).toBe(0);
    expect((await validate({ roots, pathArguments: ["target"] }, { path: "/etc" })).called).toBe(1);
    expect((await validate({ extensions: [".md"] }, { path: "a.MD" })).called).toBe(1);
    expect((await validate({ extensions: [".md"] }, { file: { path: "a.md", mode: "w" } })).called).toBe(1);
    expect((await validate({ extensions: [".md"] }, { path: "a.sh" })).said).toContain("does not end in .md");
  });

  test.for<[JsonObject, number]>([
    [{ file: { path: "/etc/passwd" } }, 0],
    [{ files: [{ path: "a" }, { path: "/etc/passwd", content: "x" }] }, 0],
    [{ request: { batch: [[{ file_path: "/etc/passwd" }]] } }, 0],
    [{ paths: { main: "/etc/passwd" } }, 0],
    [{ paths: [["a", ["/etc/passwd"]]] }, 0],
    [{ file: { location: { uri: "/etc/passwd" } } }, 0],
    [{ files: [{ path: "a", content: "/etc is a folder" }] }, 1],
    [{ request: { text: "/etc/passwd" } }, 1],
    [{ files: { "/etc/passwd": "x" } }, 0],
    [{ files: { "../a": { content: "x" } } }, 0],
    [{ files: { "a.js": "/etc/passwd" } }, 0],
    [{ file: { path: "a", target: "/etc/passwd" } }, 0],
    [{ file: { content: "/etc/passwd" } }, 0],
    [{ files: [{ name: "a.js", content: "/usr" }] }, 1],
    [{ files: { "src/a.js": "/* hello */" } }, 1],
    [{ files: { "src/a.js": { content: "/usr" } } }, 1],
    [{ files: [{ path: "a", edits: [{ old_string: "/usr", new_string: "/opt", count: 1 }] }] }, 1],
    [{ file: { path: "a", mode: "w", origin: "https://host.example/a" } }, 1],
  ])("fileValidator() finds a path at any depth of the arguments %j", async ([input, called]) => {
    expect((await validate({ roots }, input)).called).toBe(called);
  });

  test("fileValidator() limits arguments and results by their size in bytes", async () => {
    expect((await validate({ maxBytes: 4 }, { content: "éé" })).called).toBe(1);
    expect((await validate({ maxBytes: 4 }, { content: "ééé" })).said).toContain(
      "content has 6 bytes; at most 4",
    );
    expect((await validate({ maxBytes: 4 }, {}, "😀")).said).toBe("😀");
    expect((await validate({ maxBytes: 4 }, {}, "12345")).said).toContain("the result has 5 bytes");
  });

  test("fileValidator() checks media type and size of files in a result, by URL or inline data", async () => {
    const part = (mediaType: string, url: string) =>
      ({
        output: { type: "content", parts: [{ type: "file", mediaType, source: { kind: "url", url } }] },
        isError: false,
      }) as const;
    const options = { mediaTypes: ["image/*", "application/pdf"], maxBytes: 3 };
    expect((await validate(options, {}, part("image/png", "https://host/a"))).isError).toBe(false);
    expect((await validate(options, {}, part("application/pdf; v=1", "data:;base64,AAAA"))).isError).toBe(
      false,
    );
    expect((await validate(options, {}, part("image/png", "data:;base64,AAAAAAA="))).said).toContain(
      "5 bytes",
    );
    expect((await validate(options, {}, part("text/html", "https://host/a"))).said).toContain(
      "the result is text/html; allowed are image/*, application/pdf",
    );
  });

  test("fileValidator() stops the run with onInvalid: terminate, and skips tools that the tools option does not name", async () => {
    const strict = fileValidator({ roots, onInvalid: "terminate" });
    await expect(toolScene(["ok"], { input: { path: "/etc" } }).call([strict])).rejects.toMatchObject({
      code: "guardrail_tripped",
      by: "file-validator",
    });
    expect((await validate({ roots, tools: ["write"] }, { path: "/etc" })).called).toBe(1);
  });
});
