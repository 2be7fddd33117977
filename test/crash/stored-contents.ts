import { createHash } from "node:crypto";
import { parseSessionId, userMessage, type SessionChange } from "../../src/kernel/index.ts";
import { appendEntry, sessionEntry } from "../../src/testing/contracts/store-fixtures.ts";

/** The session whose entry is a large value. */
export const session = parseSessionId("large");

/** A content of several pieces. */
export const contentBytes = createHash("shake256", { outputLength: 1_000_000 }).update("content").digest();

/** A text of several pieces, which the store keeps as a content. */
export const largeText = createHash("shake256", { outputLength: 400_000 }).update("text").digest("hex");

/** Appends an entry with the large text. No run owns it. */
export const largeEntry: SessionChange = appendEntry(
  {
    ...sessionEntry("entry", null),
    runId: null,
    taskId: null,
    type: "message",
    message: userMessage(largeText),
  },
  "visible",
  session,
);
