/** The bot that receives: its id and name decide what is addressed to it. */
export interface BotAccount {
  readonly id: number;
  readonly username: string;
}
