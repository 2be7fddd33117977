import { expect, test } from "vitest";
import { appendUserMessages } from "../../../src/agents/base/user-messages.ts";
import {
  agentSession,
  messageText,
  parseSessionId,
  Transcript,
  type EventDraft,
} from "../../../src/kernel/index.ts";

test("appendUserMessages() puts user input after the prompt, and adds the prompt with its attachments once", () => {
  const attachments = [
    {
      type: "file",
      mediaType: "application/pdf",
      source: { kind: "url", url: "https://sens.example/map.pdf" },
    },
  ] as const;
  const session = agentSession({
    id: parseSessionId("walk"),
    instructions: "",
    messages: Transcript.empty,
    attachments,
  });
  const emitted: EventDraft[] = [];
  const log = { emitEvent: (draft: EventDraft) => void emitted.push(draft) };
  const answered = { prompt: "Where?", attachments, from: 0 };
  appendUserMessages(session, log, answered, []);
  expect([session.messages.length, session.attachments]).toEqual([0, attachments]);
  appendUserMessages(session, log, answered, ["Only in France."]);
  expect(session.attachments).toEqual([]);
  appendUserMessages(session, log, answered, ["By train."]);
  const messages = session.messages.slice(0);
  expect(messages.map(messageText)).toEqual(["Where?", "Only in France.", "By train."]);
  expect(emitted.map(({ type }) => type)).toEqual(["user_message", "user_message"]);
  expect(JSON.stringify(messages).split("map.pdf")).toHaveLength(2);
});
