import { expect, it } from "vitest";
import type { Hash } from "../../../src/kernel/index.ts";
import { ContentHashes } from "../../../src/runtime/process/content-hashes.ts";

function counted() {
  const hashed: unknown[] = [];
  const hash: Hash = (content) => `hash ${hashed.push(content)}`;
  return { hashed, names: new ContentHashes(hash) };
}

it("names a text and a list by their hashes, and hashes each once", () => {
  const { hashed, names } = counted();
  const tools = [{ name: "look", inputSchema: { type: "object" } }];
  const first = [names.ofText("be brief"), names.ofJson(tools, "tools")];
  expect([names.ofText("be brief"), names.ofJson(tools, "tools")]).toEqual(first);
  expect(hashed).toEqual(["be brief", '[{"inputSchema":{"type":"object"},"name":"look"}]']);
});

it("freezes what it names, so that the name holds (J1)", () => {
  const { names } = counted();
  const tools = [{ name: "look", inputSchema: { type: "object" } }];
  names.ofJson(tools, "tools");
  expect(() => Object.assign(tools[0]?.inputSchema ?? {}, { type: "string" })).toThrow(TypeError);
});

it("refuses what is no JSON, and says where (J10)", () => {
  const { names } = counted();
  expect(() => names.ofJson([{ name: () => "look" }], "the tools of a turn")).toThrow(
    expect.objectContaining({
      code: "not_json",
      message: expect.stringContaining("the tools of a turn[0].name"),
    }),
  );
});

it("forgets texts when there are many of them", () => {
  const { hashed, names } = counted();
  for (let number = 0; number < 200; number++) names.ofText(`text ${number}`);
  names.ofText("text 0");
  expect(hashed.length).toBe(201);
});
