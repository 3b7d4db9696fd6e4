import type { Migration } from 'kysely';
import { outbox } from './0001-outbox';
import { reorganisationsAndDeadLetters } from './0002-reorganisations-and-dead-letters';
import { issuances } from './0003-issuances';
import { orphansInOrder } from './0004-orphans-in-order';
import { journalByIssuer } from './0005-journal-by-issuer';
import { purgedEvents } from './0006-purged-events';
import { subscriptions } from './0007-subscriptions';
import { registries } from './0008-registries';
import { fillingChannels } from './0009-filling-channels';
import { billOfLadingNumbers } from './0010-bill-of-lading-numbers';
import { startBlocks } from './0011-start-blocks';
import { sinksOfChannels } from './0012-sinks-of-channels';
import { eventsByToken } from './0013-events-by-token';
import { finalityTags } from './0014-finality-tags';
import { conditions } from './0015-conditions';
import { subscriptionChangeLog } from './0016-subscription-change-log';
import { deliverers } from './0017-deliverers';
import { traces } from './0018-traces';
import { eventStream } from './0019-event-stream';
import { accessKeys } from './0020-access-keys';

/** Every migration by number. A migration that has been released is never changed: append another. */
export const migrations: Record<string, Migration> = {
  '0001-outbox': outbox,
  '0002-reorganisations-and-dead-letters': reorganisationsAndDeadLetters,
  '0003-issuances': issuances,
  '0004-orphans-in-order': orphansInOrder,
  '0005-journal-by-issuer': journalByIssuer,
  '0006-purged-events': purgedEvents,
  '0007-subscriptions': subscriptions,
  '0008-registries': registries,
  '0009-filling-channels': fillingChannels,
  '0010-bill-of-lading-numbers': billOfLadingNumbers,
  '0011-start-blocks': startBlocks,
  '0012-sinks-of-channels': sinksOfChannels,
  '0013-events-by-token': eventsByToken,
  '0014-finality-tags': finalityTags,
  '0015-conditions': conditions,
  '0016-subscription-change-log': subscriptionChangeLog,
  '0017-deliverers': deliverers,
  '0018-traces': traces,
  '0019-event-stream': eventStream,
  '0020-access-keys': accessKeys,
};
