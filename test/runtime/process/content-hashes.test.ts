import { expect, it } from "vitest";
import type { Hash } from "../../../src/kernel/index.ts";
import { ContentHashes } from "../../../src/runtime/process/content-hashes.ts";

function setUp() {
  const hashed: unknown[] = [];
  const hash: Hash = (content) => `hash ${hashed.push(content)}`;
  return { hashed, hashes: new ContentHashes(hash) };
}

it("ContentHashes hashes a text and a value once each", () => {
  const { hashed, hashes } = setUp();
  const tools = [{ name: "look", inputSchema: { type: "object" } }];
  const first = [hashes.ofText("be brief"), hashes.ofJson(tools, "tools")];
  expect([hashes.ofText("be brief"), hashes.ofJson(tools, "tools")]).toEqual(first);
  expect(hashed).toEqual(["be brief", '[{"inputSchema":{"type":"object"},"name":"look"}]']);
});

it("J1: ContentHashes.ofJson() freezes the value, so that its hash stays right", () => {
  const { hashes } = setUp();
  const tools = [{ name: "look", inputSchema: { type: "object" } }];
  hashes.ofJson(tools, "tools");
  expect(() => Object.assign(tools[0]?.inputSchema ?? {}, { type: "string" })).toThrow(TypeError);
});

it("J10: ContentHashes.ofJson() refuses a value that is not JSON and names the place", () => {
  const { hashes } = setUp();
  expect(() => hashes.ofJson([{ name: () => "look" }], "the tools of a turn")).toThrow(
    expect.objectContaining({
      code: "not_json",
      message: expect.stringContaining("the tools of a turn[0].name"),
    }),
  );
});

it("ContentHashes drops its cached texts after 64 texts", () => {
  const { hashed, hashes } = setUp();
  for (let number = 0; number < 200; number++) hashes.ofText(`text ${number}`);
  hashes.ofText("text 0");
  expect(hashed.length).toBe(201);
});
