import { expect, it } from "vitest";
import { remoteResult } from "../../../src/capabilities/mcp/remote-result.ts";

const text = (value: string) => ({ type: "text", text: value }) as const;
const data = "aGk=";

it("remoteResult() joins text blocks by line breaks", () => {
  expect(remoteResult({ content: [text("a"), text("b")] })).toEqual({
    output: { type: "text", text: "a\nb" },
    isError: false,
  });
});

it("remoteResult() returns structured content as JSON, without its repetition as text", () => {
  expect(remoteResult({ content: [text('{"a":1}')], structuredContent: { a: 1 } })).toEqual({
    output: { type: "json", value: { a: 1 } },
    isError: false,
  });
});

it("remoteResult() keeps structured content in the metadata beside images and errors", () => {
  const image = { type: "image", mimeType: "image/png", data } as const;
  expect(remoteResult({ content: [image], structuredContent: { a: 1 } })).toMatchObject({
    output: { type: "content" },
    metadata: { structuredContent: { a: 1 } },
  });
  expect(remoteResult({ content: [text("no")], structuredContent: { a: 1 }, isError: true })).toMatchObject({
    output: { type: "text", text: "no" },
    isError: true,
  });
});

it("remoteResult() converts images, audio, files, embedded text and links to parts", () => {
  const { output } = remoteResult({
    content: [
      text("look:"),
      { type: "image", mimeType: "image/png", data },
      { type: "audio", mimeType: "audio/wav", data },
      { type: "resource", resource: { uri: "a://b", mimeType: "text/plain", text: "inside" } },
      { type: "resource", resource: { uri: "a://c", mimeType: "application/zip", blob: data } },
      { type: "resource_link", uri: "a://d", name: "d", description: "the fourth" },
    ],
  });
  const source = { kind: "base64", data };
  expect(output).toEqual({
    type: "content",
    parts: [
      { type: "text", text: "look:" },
      { type: "image", mediaType: "image/png", source },
      { type: "file", mediaType: "audio/wav", source },
      { type: "text", text: "inside" },
      { type: "file", mediaType: "application/zip", source, filename: "a://c" },
      { type: "text", text: "[resource a://d: d, the fourth]" },
    ],
  });
});

it("remoteResult() converts a result without content to an empty text", () => {
  expect(remoteResult({ content: [] })).toEqual({ output: { type: "text", text: "" }, isError: false });
});
