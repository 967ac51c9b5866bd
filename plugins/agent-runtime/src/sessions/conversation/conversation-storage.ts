import type { SessionStore } from '@plugboard/kernel';
import type { ApprovalRecords } from '../pending/approval-records.js';
import type { StoreCall } from '../store/store-call.js';

/** Where conversations are kept. */
export interface ConversationStorage {
  readonly store: SessionStore;
  readonly storeCall: StoreCall;
  readonly approvals: ApprovalRecords;
}
