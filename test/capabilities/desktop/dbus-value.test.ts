import fc from "fast-check";
import { expect, test } from "vitest";
import { DBusReader, DBusWriter } from "../../../src/capabilities/desktop/accessibility/dbus-value.ts";

test("DBusReader reads what DBusWriter wrote, at any alignment", () => {
  const text = fc.string({ unit: "grapheme" });
  fc.assert(
    fc.property(fc.array(fc.oneof(text, fc.nat(2 ** 32 - 1))), (values) => {
      const writer = new DBusWriter();
      for (const value of values) {
        if (typeof value === "string") writer.text(value);
        else writer.u32(value);
      }
      const signature = values.map((value) => (typeof value === "string" ? "s" : "u")).join("");
      expect(new DBusReader(writer.bytes(), true).all(signature)).toEqual(values);
    }),
  );
});

test("DBusReader reads structures, arrays, variants and integers of all sizes", () => {
  const list = new DBusWriter().text(":1.2").text("/a").bytes();
  const writer = new DBusWriter().u32(list.length).align(8).raw(list);
  writer
    .u8(1)
    .raw(Buffer.from("i\0"))
    .u32(-5)
    .u32(1)
    .u8(200)
    .align(2)
    .raw(Buffer.from([0xff, 0xff]));
  writer.align(8).raw(Buffer.from([1, 0, 0, 0, 0, 0, 0, 0x80]));
  const [references, ...rest] = new DBusReader(writer.bytes(), true).all("a(so)vbynx");
  expect(references).toEqual([[":1.2", "/a"]]);
  expect(rest).toEqual([-5, true, 200, -1, -(2n ** 63n) + 1n]);
});

test("DBusReader refuses a message that ends early or contains an unknown type", () => {
  expect(() => new DBusReader(Buffer.from([9, 0, 0, 0, 65]), true).all("s")).toThrow("ends before");
  expect(() => new DBusReader(Buffer.alloc(8), true).all("?")).toThrow("unknown type");
});
