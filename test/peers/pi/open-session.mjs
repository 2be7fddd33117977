// Opens a session file with pi and prints what pi makes of it: node open-session.mjs FILE
import { SessionManager } from "@earendil-works/pi-coding-agent";

const session = SessionManager.open(process.argv[2]);
process.stdout.write(
  JSON.stringify({
    sessionId: session.getSessionId(),
    name: session.getSessionName(),
    label: session.getLabel("t1"),
    messages: session
      .buildSessionContext()
      .messages.map(({ role, content, summary }) => [
        role,
        summary ?? (typeof content === "string" ? content : content.map((part) => part.text ?? part.name)),
      ]),
    branches: session
      .getEntries()
      .filter(({ parentId }) => parentId === "t1-2")
      .map(({ id }) => id),
  }),
);
