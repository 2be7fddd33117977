import type { Clock, Records, Runtime, Store } from "../../../kernel/index.ts";
import type { ServedAgents } from "../../http/served-agents.ts";
import type { Owner } from "../access/owner.ts";
import type { Senders } from "../access/senders.ts";
import type { ChannelAdapter } from "../channel.ts";

/** The parts that the classes of a channel's host share. */
export interface ChannelParts {
  readonly channel: ChannelAdapter;
  /** Name of the agent that answers. */
  readonly agent: string;
  readonly agents: ServedAgents;
  readonly runtime: Runtime;
  readonly store: Pick<Store, "records" | "mailbox" | "onChange">;
  readonly records: Records;
  readonly senders: Senders;
  readonly clock: Clock;
  readonly log: (line: string) => void;
}

/** S6: returns the runtime in the view of the owner of a message. */
export function viewOf(runtime: Runtime, { tenantId, userId }: Owner): Runtime {
  return tenantId === null ? runtime : runtime.forTenant({ tenantId, userId });
}
