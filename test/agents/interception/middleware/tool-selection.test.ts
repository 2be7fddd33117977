import { expect, test } from "vitest";
import {
  auditLogger,
  cache,
  fileValidator,
  humanApproval,
} from "../../../../src/agents/interception/middleware/index.ts";

/** Middleware that selects tools, called as by a caller without types. */
const makers: Readonly<Record<string, (tools: never) => unknown>> = {
  "fileValidator()": (tools) => fileValidator({ tools, roots: ["/srv"] }),
  "humanApproval()": (tools) => humanApproval({ tools }),
  "cache()": (tools) => cache({ tools } as never),
};

test.each(Object.entries(makers))(
  "middleware %s refuses a selection of tools that would select no tool",
  (name, make) => {
    for (const tools of ["write", { write: true }, [/write/u], new Set(["write"]), 5])
      expect(() => make(tools as never)).toThrow(`of ${name}: expected a list of names of tools`);
    expect(() => make([] as never)).not.toThrow("names of tools");
  },
);

test.each([[{}], [{ log: null }], [{ log: { write: () => undefined } }], [{ log: () => undefined }]])(
  "auditLogger() refuses %j, which would record nothing",
  (options) => {
    expect(() => auditLogger(options as never)).toThrow(
      "invalid log of auditLogger(): it has no method record",
    );
  },
);
