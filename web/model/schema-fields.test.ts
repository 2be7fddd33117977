import { expect, test } from "vitest";
import { enteredOf, fieldsOf, formOf, valueOf } from "./schema-fields.ts";

const schema = {
  type: "object",
  properties: {
    note: { type: "string" },
    city: { type: "string", minLength: 2, title: "City" },
    nights: { type: "integer", minimum: 1, maximum: 9, default: 2 },
    room: { enum: ["single", "double"] },
    pets: { type: "boolean" },
    guests: { type: "array" },
  },
  required: ["city", "room"],
} as const;

test("the form of a schema has fields with kinds, limits and defaults, the required fields first", () => {
  const fields = fieldsOf(schema);
  expect(fields.map(({ label, kind, isRequired }) => [label, kind, isRequired])).toEqual([
    ["City", "text", true],
    ["room", "choice", true],
    ["note", "text", false],
    ["nights", "integer", false],
    ["pets", "flag", false],
    ["guests", "json", false],
  ]);
  expect(fields.find(({ name }) => name === "nights")?.hint).toBe("At least 1, at most 9.");
  expect(enteredOf(fields, { city: "Rome", guests: ["a"] })).toMatchObject({
    city: "Rome",
    nights: "2",
    guests: '[\n  "a"\n]',
    note: "",
  });
});

test("the form of a schema turns texts into a value, and names the field of each wrong text", () => {
  const fields = fieldsOf(schema);
  expect(
    valueOf(fields, { city: "Rome", room: "double", nights: "3", pets: "true", guests: '["a"]' }),
  ).toEqual({
    value: { city: "Rome", room: "double", nights: 3, pets: true, guests: ["a"] },
    problems: {},
  });
  expect(valueOf(fields, { city: "R", nights: "2.5", guests: "[" }).problems).toEqual({
    city: "Enter at least 2 characters.",
    room: "This field is needed.",
    nights: "Enter a whole number.",
    guests: 'Enter JSON, such as ["a"] or { "b": 1 }.',
  });
});

test("the form of a schema has a field per property, one field for a plain value, and no field for a list", () => {
  expect(formOf(schema)?.fields).toEqual(fieldsOf(schema));
  expect(formOf(schema)?.read({ city: "Rome", room: "double" }).value).toEqual({
    city: "Rome",
    room: "double",
  });
  const street = formOf({ type: "string", minLength: 2 });
  expect(street?.fields.map(({ label, kind, isRequired }) => [label, kind, isRequired])).toEqual([
    ["Value", "text", true],
  ]);
  expect(street?.read({ value: "Main St 1" })).toEqual({ value: "Main St 1", problems: {} });
  expect(street?.read({ value: "M" }).problems).toEqual({ value: "Enter at least 2 characters." });
  expect(formOf({ type: "boolean" })?.read({}).value).toBe(false);
  expect(formOf({ enum: ["a", "b"], title: "Size" })?.fields[0]).toMatchObject({
    label: "Size",
    kind: "choice",
  });
  for (const other of [null, {}, { type: "array" }, { type: "object" }, { enum: [1, 2] }] as const)
    expect(formOf(other)).toBeNull();
});

test("the form of a schema does not show the limits of exact integers as a hint", () => {
  const count = { type: "integer", minimum: -9007199254740991, maximum: 9007199254740991 } as const;
  expect(fieldsOf({ properties: { count } })[0]?.hint).toBe("");
  expect(fieldsOf({ properties: { count: { ...count, minimum: 0 } } })[0]?.hint).toBe("At least 0.");
});

test("the form of a schema accepts a text that may be null, and checks a list, an object and a number in a list", () => {
  const fields = fieldsOf({
    properties: {
      branch: { anyOf: [{ type: "string", minLength: 2 }, { type: "null" }], description: "Branch" },
      tries: { type: ["integer", "null"], exclusiveMinimum: 0 },
      tags: { type: "array" },
      level: { type: "number", enum: [1, 2] },
    },
  });
  expect(fields.map(({ kind, hint }) => [kind, hint])).toEqual([
    ["text", "Branch"],
    ["integer", "More than 0."],
    ["json", ""],
    ["number", ""],
  ]);
  expect(valueOf(fields, { branch: "m", tries: "0", tags: "{}", level: "3" }).problems).toEqual({
    branch: "Enter at least 2 characters.",
    tries: "Enter more than 0.",
    tags: 'Enter a list, such as ["a"].',
    level: "Enter one of 1, 2.",
  });
});

test("the form of a schema leaves a pattern that could block the browser to the server, and checks a simple one", () => {
  const patterns = ["^[a-z]+$", "^(a+)+$", "^(?:a|a)*$", "^a*a*a*a*a*a*$"];
  const properties = Object.fromEntries(patterns.map((pattern) => [pattern, { type: "string", pattern }]));
  const entered = Object.fromEntries(patterns.map((pattern) => [pattern, `${"a".repeat(40)}!`]));
  expect(valueOf(fieldsOf({ properties }), entered).problems).toEqual({
    "^[a-z]+$": "It must fit ^[a-z]+$.",
  });
});

test("the form of a schema treats properties that objects inherit or treat specially as ordinary fields", () => {
  const names = ["constructor", "toString", "__proto__"];
  const properties = Object.fromEntries(names.map((name) => [name, { type: "string" }]));
  const fields = fieldsOf({ properties, required: names });
  expect(Object.values(enteredOf(fields))).toEqual(["", "", ""]);
  expect(Object.keys(valueOf(fields, {}).problems)).toEqual(names);
  const entered = Object.fromEntries(names.map((name) => [name, "x"]));
  expect(JSON.stringify(valueOf(fields, entered).value)).toBe(
    '{"constructor":"x","toString":"x","__proto__":"x"}',
  );
});
