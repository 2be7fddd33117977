import { expect, test } from "vitest";
import { exposition } from "../../../src/surfaces/cli/commands/worker/prometheus.ts";
import { parseExposition } from "./prometheus-parser.ts";

test("the Prometheus exposition() escapes label values and help texts so that a strict reader returns them unchanged", () => {
  const model = 'a"b\\c\nd{e="f",g}';
  const text = exposition([
    {
      name: "reeve_tokens_total",
      type: "counter",
      help: "Back\\slash and\nline feed.",
      samples: [{ labels: { model, kind: "input" }, value: 3 }],
    },
    { name: "reeve_runs_owned", type: "gauge", help: "Owned.", samples: [{ value: 0.1 + 0.2 }] },
  ]);
  const families = parseExposition(text);
  expect(families.get("reeve_tokens_total")).toEqual({
    type: "counter",
    help: "Back\\slash and\nline feed.",
    samples: [{ labels: { model, kind: "input" }, value: 3 }],
  });
  expect(families.get("reeve_runs_owned")?.samples).toEqual([{ labels: {}, value: 0.1 + 0.2 }]);
});

test("the Prometheus exposition() writes values that are not finite, very small or very large as Prometheus reads them", () => {
  const values = [Number.NaN, Infinity, -Infinity, 1e-9, 1e21, 0];
  const samples = values.map((value, index) => ({ labels: { index: String(index) }, value }));
  const families = parseExposition(exposition([{ name: "g", type: "gauge", help: "", samples }]));
  expect(families.get("g")?.samples.map(({ value }) => value)).toEqual(values);
});

test.for([
  ["# HELP a b\n# TYPE a counter\na 1\n", "a counter whose name does not end in _total"],
  ["# HELP a b\n# TYPE a gauge\na 1\na 2\n", "a sample that appears twice"],
  ["# HELP a b\n# TYPE a gauge\nb 1\n", "a sample of another family"],
  ['# HELP a b\n# TYPE a gauge\na{x="\\q"} 1\n', "an unknown escape"],
  ["# HELP a b\n# TYPE a gauge\na one\n", "a value that is no number"],
  ["# TYPE a gauge\na 1\n", "a family without a help text"],
  ["# HELP a b\n# TYPE a gauge\na 1", "a missing line feed at the end"],
] as const)("the Prometheus parser of the tests refuses %j: %s", ([text]) => {
  expect(() => parseExposition(text)).toThrow(/^(?:invalid|the last line)/u);
});
