import { type Extensions, type PluginContext, type SessionStore, SessionStores } from '@plugboard/kernel';
import { CONTEXT, inject } from '@plugboard/kernel/injection';
import type { OpenConversation } from '../../engine/turn/conversation.js';
import { ApprovalRecords } from '../pending/approval-records.js';
import { type StoreCall, storeCalls } from '../store/store-call.js';
import type { ConversationStorage } from './conversation-storage.js';
import { SessionConversation } from './session-conversation.js';
import type { SessionHistory } from './session-history.js';
import { StatelessConversation } from './stateless-conversation.js';

/** Opens the conversations of turns. */
export class TurnConversations {
  readonly #stores: Extensions<SessionStore>;
  readonly #storeCall: StoreCall;
  readonly #approvals: ApprovalRecords;

  constructor(@inject(CONTEXT) { clock, extensions }: PluginContext, @inject(ApprovalRecords) approvals: ApprovalRecords) {
    this.#stores = extensions(SessionStores);
    this.#storeCall = storeCalls(clock);
    this.#approvals = approvals;
  }

  /** Of a turn without a session. */
  readonly stateless: OpenConversation = (context) => new StatelessConversation(context, this.#storage);

  ofSession(history: SessionHistory): OpenConversation {
    return (context) => new SessionConversation(context, history, this.#storage);
  }

  get #storage(): ConversationStorage {
    return { store: this.#stores.one(), storeCall: this.#storeCall, approvals: this.#approvals };
  }
}
