import { expect, test } from "vitest";
import { earlierInput } from "./attached.ts";

const recorded = { isRecorded: true, kind: "agent" } as const;

test("the page shows a recorded input of an agent with a schema, or of a workflow, as its value", () => {
  const value = { city: "Rome", nights: 2 };
  expect(earlierInput({ prompt: '{"city":"Rome"}', value }, recorded).value).toEqual(value);
  const ofWorkflow = earlierInput({ value: 3, unit: "cm" }, { isRecorded: true, kind: "workflow" });
  expect(ofWorkflow).toMatchObject({ value: { value: 3, unit: "cm" }, isJson: true });
  // What a schedule sends is not recorded: it is the value already.
  expect(earlierInput(value, { isRecorded: false, kind: "agent" })).toMatchObject({ value, isJson: true });
});

test("the page shows a recorded message as its text and its files, also inside a request", () => {
  const file = { type: "file", filename: "a.txt", mediaType: "text/plain" };
  const parts = [{ type: "text", text: "Read it." }, file];
  const message = { text: "Read it.", attached: [{ name: "a.txt", part: file }], value: null, isJson: false };
  expect(earlierInput(parts, recorded)).toEqual(message);
  expect(earlierInput({ prompt: parts }, recorded)).toEqual(message);
  expect(earlierInput("Go.", recorded)).toMatchObject({ text: "Go.", isJson: false });
  expect(earlierInput(null, recorded)).toMatchObject({ text: "", isJson: false });
});
