import { expect, test } from "vitest";
import { draftOf, fieldDraft, jsonDraft, readDraft, type CallDraft } from "./edited-call.ts";

const inputSchema = {
  type: "object",
  properties: {
    command: { type: "string", minLength: 2, title: "Harmless" },
    tries: { type: "integer", minimum: 1 },
    quiet: { type: "boolean" },
    force: { type: "boolean", default: true },
    tag: { enum: ["next", "latest"] },
  },
  required: ["command"],
} as const;

/** The draft after a person has written into fields. */
function write(draft: CallDraft, texts: Readonly<Record<string, string>>): CallDraft {
  if (draft.form === null) throw new Error("This draft has no fields.");
  return { ...draft, entered: { ...draft.entered, ...texts } };
}

test("the page's form for a call has a field per argument with the tool's name for it, and unedited ones stay the same", () => {
  const request = { inputSchema, input: { command: "ls", quiet: false, extra: { a: 1 }, tag: "beta" } };
  const draft = draftOf(request);
  expect(draft.form?.fields.map(({ label, kind }) => [label, kind])).toEqual([
    ["command", "text"],
    ["tries", "integer"],
    ["quiet", "flag"],
    ["force", "flag"],
    // The asked value is not one of the choices.
    ["tag", "json"],
    ["extra", "json"],
  ]);
  expect(readDraft(request, draft)).toEqual({
    value: request.input,
    changes: [],
    problems: {},
    problem: null,
  });
  const changed = readDraft(request, write(draft, { command: "ls -l", tries: "2", force: "", tag: "" }));
  expect(changed.value).toEqual({ command: "ls -l", tries: 2, quiet: false, force: false, extra: { a: 1 } });
  expect(changed.changes).toEqual(["command", "tag", "tries", "force"]);
  expect(readDraft(request, write(draft, { command: "l", tries: "0" }))).toMatchObject({
    value: undefined,
    changes: ["command", "tries"],
    problems: { command: "Enter at least 2 characters.", tries: "Enter at least 1." },
  });
});

test("the page edits the arguments that the tool receives, as JSON without a schema, and counts a change of either form", () => {
  const parsedInput = { command: "ls", tries: 1 };
  const request = { input: '{"command":"ls"}', parsedInput };
  const draft = draftOf(request);
  expect(draft).toEqual({ form: null, json: JSON.stringify(parsedInput, null, 2) });
  expect(readDraft(request, draft).changes).toEqual([]);
  expect(readDraft(request, { form: null, json: "{" })).toMatchObject({
    value: undefined,
    problem: "The arguments are not valid JSON.",
  });
  const json = { form: null, json: '{ "tries": 1, "command": "ls", "tag": "next" }' } as const;
  expect(readDraft(request, json).changes).toEqual(["tag"]);
  expect(readDraft(request, { form: null, json: "[]" }).changes).toEqual(["arguments"]);
  const known = { ...request, inputSchema };
  const fields = fieldDraft(known, { command: "ls", tag: "next" });
  if (fields === null) throw new Error("An object has fields.");
  expect(readDraft(known, fields)).toMatchObject({
    value: { command: "ls", tag: "next" },
    changes: ["tries", "tag"],
  });
  for (const other of ["ls", ["ls"], null]) expect(fieldDraft(known, other)).toBeNull();
});

test("the page edits a text with hidden characters in quotes with escapes, and returns the same text", () => {
  const input = { command: "a\u202Eb\u{e0041}\r\n\t", "na\u200bme": ["\\u202e", "\ud800", 1e-7] };
  const json = jsonDraft(input);
  if (json.form !== null) throw new Error("The draft is JSON.");
  expect(json.json).not.toMatch(/[\p{Cf}\p{Cs}]/u);
  expect(JSON.parse(json.json)).toEqual(input);
  const request = { inputSchema, input };
  const draft = draftOf(request);
  expect(draft.form?.shown["command"]).toBe(String.raw`"a\u202eb\udb40\udc41\r\n\t"`);
  expect(readDraft(request, write(draft, { command: String.raw`"a\u202eb"` })).value).toMatchObject({
    command: "a\u202Eb",
  });
  expect(readDraft(request, write(draft, { command: "1" })).problems).toEqual({
    command: 'Enter a text in quotes, such as "a".',
  });
});
