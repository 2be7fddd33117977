import { capShareModel } from "./cap-share-model.ts";
import { inboxModel } from "./inbox-model.ts";
import { mailboxModel } from "./mailbox-model.ts";
import { ownershipModel } from "./ownership-model.ts";
import type { Model } from "./store-model.ts";
import { waitsModel } from "./waits-model.ts";

/** The models, by the title of their test. */
export const models: Readonly<Record<string, Model>> = {
  "P1, P2, P3: a mailbox keeps each message once by id, in the order of arrival, until a commit consumes it":
    mailboxModel,
  "I1-I4: an inbox delivers each message once by id, in order, keeps it until it is acknowledged, and moves it to the dead letters after too many deliveries":
    inboxModel,
  "L1-L4, J3: a run has at most one owner, is claimed only if it has work, and its previous owner cannot write":
    ownershipModel,
  "W1, W2: every value goes to exactly one recorded wait, in the order of arrival, despite crashes, timeouts and abandoned waits":
    waitsModel,
  "U7, U8, B7: for every cap and day, what runs were billed is at most what is spent and held, which is at most the cap, despite crashes and deletions":
    capShareModel,
};
