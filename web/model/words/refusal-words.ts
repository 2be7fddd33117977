interface RefusalWords {
  readonly title: string;
  /** What happened. */
  readonly what: string;
  /** What the person can do. */
  readonly todo: string;
}

/** Describes why a run cannot be shown, and what the person can do. */
export function refusalWords(
  runId: string,
  { code, message }: { readonly code: string; readonly message: string },
): RefusalWords {
  switch (code) {
    case "not_found":
      return {
        title: "No run has this id",
        what: `The store has no run ${runId}.`,
        todo: "Check that the id is complete, or choose the run in the list. The page opens the run if it starts now.",
      };
    case "invalid_argument":
      return {
        title: "This is not the id of a run",
        what: `The address names ${runId}. Ids of runs start with run_.`,
        todo: "Choose the run in the list.",
      };
    case "permission_denied":
      return {
        title: "You may not see this run",
        what: `The server does not show ${runId} to you.`,
        todo: "Open the page with a link or token that may read it.",
      };
    default:
      return {
        title: "This run cannot be shown",
        what: `The server refused it: ${message}.`,
        todo: "Try again, or look at the log of the server.",
      };
  }
}
