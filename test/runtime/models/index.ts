import { inboxModel } from "./inbox-model.ts";
import { mailboxModel } from "./mailbox-model.ts";
import { ownershipModel } from "./ownership-model.ts";
import type { Model } from "./store-model.ts";
import { waitsModel } from "./waits-model.ts";

/** By what each of them says. */
export const models: Readonly<Record<string, Model>> = {
  "keeps mail once by id, in the order of arrival, until a commit consumes it (P1, P2, P3)": mailboxModel,
  "delivers once by id, keeps until acknowledged, in order, and buries what came back too often (I1-I4)":
    inboxModel,
  "gives a run to one owner at a time, when there is something to do, and fences the one before (L1-L4, J3)":
    ownershipModel,
  "gives every value to one recorded wait, in the order in which they came, whoever dies, leaves or is late (W1, W2)":
    waitsModel,
};
