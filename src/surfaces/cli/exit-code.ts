import type { FaultCode } from "../../kernel/index.ts";

/** What the command line says by its exit code: one number for each kind of end, the same in every command. */
export const exitCodes = {
  ok: { code: 0, means: "done, and nothing was found wrong" },
  tampered: { code: 1, means: "an event log does not verify" },
  usage: { code: 2, means: "the arguments do not make sense" },
  notFound: { code: 3, means: "there is no such store or run" },
  unreadable: { code: 4, means: "the store cannot be read: locked, damaged, or of another version" },
  internal: { code: 5, means: "an error of Reeve's own" },
} as const;

export type ExitKind = keyof typeof exitCodes;

const byFault: { readonly [Code in FaultCode]?: ExitKind } = {
  invalid_argument: "usage",
  not_found: "notFound",
  store_unavailable: "unreadable",
  store_read_only: "unreadable",
  store_full: "unreadable",
  store_corrupt: "unreadable",
  version_mismatch: "unreadable",
};

export function exitKindOf(code: FaultCode): ExitKind {
  return byFault[code] ?? "internal";
}

export function exitCodeTable(): string {
  const lines = Object.values(exitCodes).map(({ code, means }) => `  ${code}  ${means}`);
  return `Exit codes:\n${lines.join("\n")}`;
}
