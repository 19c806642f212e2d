#!/usr/bin/perl
# Net::AMQP (Debian's libnet-amqp-perl) with the XML of one version: AMQP 0-8, or 0-9-1 with the header
# `AMQP 1 1 0 9`. It is a codec: the socket and the conversation around it are written here. The XML's path is
# in the environment. See ../steps.py for the steps and ../clients.py for the conversation.
use strict;
use warnings;

use Digest::SHA qw(sha256_hex);
use IO::Socket::INET;
use JSON::PP ();
use Net::AMQP;

my $json = JSON::PP->new->canonical->allow_nonref->latin1;
my %env  = %ENV;
Net::AMQP::Protocol->load_xml_spec($env{AMQP_XML});
my $old = $Net::AMQP::Protocol::VERSION_MAJOR == 8;
$| = 1;

# The 14th property of basic is reserved in 0-9-1.
my %field = $old ? () : (cluster_id => 'reserved');

sub method {
    my ($name, %arguments) = @_;
    my ($class, $method) = split /\./, $name;
    my $kind = 'Net::AMQP::Protocol::' . ucfirst($class) . '::' . join '', map { ucfirst } split /-/, $method;
    return $kind->new(%arguments);
}

sub name_of {
    my ($class, $method) = ref($_[0]) =~ /^Net::AMQP::Protocol::(\w+)::(\w+)$/;
    $method =~ s/(?<=[a-z])(?=[A-Z])/-/g;
    return lc "$class.$method";
}

# ---- one connection ----------------------------------------------------------------------------------------

package Connection;

# Shake hands. `tune` are channel-max and frame-max of tune-ok; `empty` sends an empty response first, as SASL
# has it for mechanisms that let the server speak first.
sub new {
    my ($class, %how) = @_;
    my $self = bless { buffer => '', frames => [], channels => 0, closed => undef }, $class;
    $self->{socket} = IO::Socket::INET->new(PeerAddr => $env{AMQP_HOST}, PeerPort => $env{AMQP_PORT}, Timeout => 20)
      or die "no connection: $@\n";
    binmode $self->{socket};
    $self->octets(Net::AMQP::Protocol->header);
    $self->{start} = $self->expect(0, 'connection.start');
    my $plain = "\0$env{AMQP_USER}\0" . ($how{password} // $env{AMQP_PASSWORD});
    $self->say(0, 'connection.start-ok', client_properties => { product => 'net-amqp' }, mechanism => 'PLAIN',
        response => $how{empty} ? '' : $plain, locale => 'en_US');
    if ($how{empty}) {
        $self->expect(0, 'connection.secure');
        $self->say(0, 'connection.secure-ok', response => $plain);
    }
    my $tune = $self->expect(0, 'connection.tune');
    my ($channel_max, $frame_max) = @{ $how{tune} // [$tune->channel_max, $tune->frame_max] };
    $self->{frame_max} = $frame_max || $tune->frame_max || 131072;
    $self->say(0, 'connection.tune-ok', channel_max => $channel_max, frame_max => $frame_max, heartbeat => 0);
    # 0-9-1 reserves what are capabilities and insist in 0-8, and keeps their octets.
    $self->say(0, 'connection.open', virtual_host => $how{vhost} // $env{AMQP_VHOST});
    $self->{open_ok} = $self->expect(0, 'connection.open-ok');
    return $self;
}

sub octets {
    my ($self, $data) = @_;
    while (length $data) {
        my $sent = syswrite $self->{socket}, $data;
        die "the connection is gone: $!\n" unless defined $sent;
        substr $data, 0, $sent, '';
    }
}

sub say {
    my ($self, $channel, $name, %arguments) = @_;
    my $frame = main::method($name, %arguments)->frame_wrap;
    $frame->channel($channel);
    $self->octets($frame->to_raw_frame);
}

sub frame {
    my ($self) = @_;
    while (1) {
        while (!@{ $self->{frames} }) {
            my $got = sysread $self->{socket}, $self->{buffer}, 65536, length $self->{buffer};
            die "the connection is gone\n" unless $got;
            push @{ $self->{frames} }, Net::AMQP->parse_raw_frames(\$self->{buffer});
        }
        my $frame = shift @{ $self->{frames} };
        return $frame unless $frame->isa('Net::AMQP::Frame::Heartbeat');
    }
}

# The next method on this channel, which must be one of these. A close is answered, and dies as a told error.
sub expect {
    my ($self, $channel, @names) = @_;
    my $frame = $self->frame;
    die 'a method was expected, not ' . ref($frame) . "\n" unless $frame->can('method_frame');
    my ($method, $name) = ($frame->method_frame, main::name_of($frame->method_frame));
    if ($name =~ /^(?:channel|connection)\.close$/ && !grep { $_ eq $name } @names) {
        # `class_id` and `method_id` are the close's own ids, as methods; the fields of that name are the culprit's.
        my $told = [ $method->{reply_code} + 0, $method->{reply_text}, [ $method->{class_id} + 0, $method->{method_id} + 0 ] ];
        $self->say($frame->channel, "$name-ok");
        die { told => $told };
    }
    die "@names on $channel was expected, not $name on " . $frame->channel . "\n"
      unless $frame->channel == $channel && grep { $_ eq $name } @names;
    return $method;
}

sub content {
    my ($self) = @_;
    my $header = $self->frame;
    die "a content header was expected\n" unless $header->isa('Net::AMQP::Frame::Header');
    my $body = '';
    $body .= $self->frame->payload while length $body < $header->body_size;
    return { body => $body, properties => { %{ $header->header_frame } } };
}

sub close {
    my ($self) = @_;
    $self->say(0, 'connection.close', reply_code => 200, reply_text => 'bye', class_id => 0, method_id => 0);
    $self->expect(0, 'connection.close-ok');
    CORE::close $self->{socket};
    return JSON::PP::true;
}

sub channel {
    my ($self) = @_;
    my $channel = bless { connection => $self, number => ++$self->{channels} }, 'Channel';
    $channel->ask('channel.open', 'channel.open-ok');
    return $channel;
}

# ---- one channel -------------------------------------------------------------------------------------------

package Channel;

sub say    { my ($self, @rest) = @_; $self->{connection}->say($self->{number}, @rest) }
sub expect { my ($self, @rest) = @_; $self->{connection}->expect($self->{number}, @rest) }

sub ask {
    my ($self, $name, $answer, %arguments) = @_;
    $self->say($name, %arguments);
    return $self->expect($answer);
}

sub own_queue {
    my ($self, %arguments) = @_;
    return $self->ask('queue.declare', 'queue.declare-ok', exclusive => 1, arguments => \%arguments)->queue;
}

sub publish {
    my ($self, $key, $body, %how) = @_;
    my $connection = $self->{connection};
    my $properties = delete $how{properties} // {};
    $self->say('basic.publish', routing_key => $key, exchange => '', %how);
    my $header = Net::AMQP::Frame::Header->new(
        channel => $self->{number}, weight => 0, body_size => length $body,
        header_frame => Net::AMQP::Protocol::Basic::ContentHeader->new(%$properties));
    my $data  = $header->to_raw_frame;
    my $piece = $connection->{frame_max} - 8;
    for (my $at = 0; $at < length $body; $at += $piece) {
        $data .= Net::AMQP::Frame::Body->new(channel => $self->{number}, payload => substr $body, $at, $piece)
          ->to_raw_frame;
    }
    $connection->octets($data);
}

sub get {
    my ($self, $queue, %how) = @_;
    $self->say('basic.get', queue => $queue, %how);
    my $method = $self->expect('basic.get-ok', 'basic.get-empty');
    return undef if main::name_of($method) eq 'basic.get-empty';
    return { %{ $self->{connection}->content }, map { $_ => $method->{$_} } qw(delivery_tag redelivered message_count) };
}

sub delivery {
    my ($self) = @_;
    my $method = $self->expect('basic.deliver');
    return { %{ $self->{connection}->content }, map { $_ => $method->{$_} } qw(delivery_tag redelivered) };
}

sub purge { my ($self, $queue) = @_; $self->ask('queue.purge', 'queue.purge-ok', queue => $queue)->message_count }

package main;

# ---- the steps ---------------------------------------------------------------------------------------------

sub ask {
    print "ask $_[0]\n";
    return $json->decode(scalar readline STDIN);
}

sub bool { $_[0] ? JSON::PP::true : JSON::PP::false }

# What a piece of work was told by a close, or undef.
sub told {
    my ($work) = @_;
    return undef if eval { $work->(); 1 };
    return ref $@ ? $@->{told} : die $@;
}

my %steps;

$steps{server} = sub {
    my $start = Connection->new->{start};
    return {
        version    => [ $start->version_major + 0, $start->version_minor + 0 ],
        product    => $start->server_properties->{product},
        mechanisms => [ sort split / /, $start->mechanisms ],
        known_hosts => '',
    };
};

$steps{declare} = sub {
    my $ch    = Connection->new->channel;
    my $shape = sub { [ $_[0]->queue, $_[0]->message_count + 0, $_[0]->consumer_count + 0 ] };
    my $named = $ch->ask('queue.declare', 'queue.declare-ok',
        queue => 'declare', durable => 1, arguments => { 'x-max-length' => 10 });
    my $passive = $ch->ask('queue.declare', 'queue.declare-ok', queue => 'declare', passive => 1);
    my $own     = $ch->own_queue;
    $ch->publish('declare', 'x');
    my $seen = { named => $shape->($named), passive => $shape->($passive), server_named => bool($own =~ /^amq\.gen-/) };
    $seen->{purged}  = $ch->purge('declare') + 0;
    $seen->{deleted} = $ch->ask('queue.delete', 'queue.delete-ok', queue => 'declare')->message_count + 0;
    return $seen;
};

$steps{bindings} = sub {
    my $ch = Connection->new->channel;
    my %seen;
    $ch->ask('queue.declare', 'queue.declare-ok', queue => $_, exclusive => 1) for qw(red blue);
    my $count = sub { $seen{ $_[0] } = [ map { $ch->purge($_) + 0 } qw(red blue) ] };
    my $bind  = sub {
        my ($queue, $exchange, $key, $arguments) = @_;
        $ch->ask('queue.bind', 'queue.bind-ok', queue => $queue, exchange => "x.$exchange", routing_key => $key,
            arguments => $arguments // {});
    };
    $ch->ask('exchange.declare', 'exchange.declare-ok', exchange => "x.$_", type => $_) for qw(direct fanout topic headers);
    for my $queue (qw(red blue)) {
        $bind->($queue, 'direct', $queue);
        $bind->($queue, 'fanout', '');
    }
    $bind->('red',  'topic',   '*.fast.#');
    $bind->('blue', 'topic',   'slow.*');
    $bind->('red',  'headers', '', { 'x-match' => 'all', a => 1, b => 'x' });
    $bind->('blue', 'headers', '', { 'x-match' => 'any', a => 1, c => 'y' });

    $ch->publish('red', '', exchange => 'x.direct');
    $count->('direct');
    $ch->publish('anything', '', exchange => 'x.fanout');
    $count->('fanout');
    $ch->publish($_, '', exchange => 'x.topic') for qw(car.fast.now slow.car car.fast);
    $count->('topic');
    $ch->publish('', '', exchange => 'x.headers', properties => { headers => $_ }) for { a => 1, b => 'x' }, { a => 1 };
    $count->('headers');
    # The XML of 0-8 has no queue.unbind.
    if (!$old) {
        $ch->ask('queue.unbind', 'queue.unbind-ok', queue => 'red', exchange => 'x.fanout', routing_key => '');
        $ch->publish('', '', exchange => 'x.fanout');
        $count->('unbind');
    }
    $ch->ask('exchange.delete', 'exchange.delete-ok', exchange => "x.$_") for qw(direct fanout topic headers);
    my $told = told(sub { $ch->ask('exchange.declare', 'exchange.declare-ok', exchange => 'x.topic', type => 'topic', passive => 1) });
    $seen{deleted} = $told->[0];
    return \%seen;
};

$steps{properties} = sub {
    my $ch    = Connection->new->channel;
    my $queue = $ch->own_queue;
    my %sent  = (%{ $json->decode($env{STEP_PROPERTIES}) }, headers => $json->decode($env{STEP_HEADERS}));
    my %named = map { ($field{$_} // $_) => $sent{$_} } keys %sent;
    $ch->publish($queue, '', properties => \%named);
    my $got = $ch->get($queue, no_ack => 1)->{properties};
    my %seen = map { $_ => $got->{ $field{$_} // $_ } } keys %sent;
    $_ += 0 for @seen{qw(delivery_mode priority timestamp)};
    my $headers = delete $seen{headers};
    return { properties => \%seen, headers => numbers($headers) };
};

# The same with integers that JSON sees as such.
sub numbers {
    my ($value) = @_;
    return { map { $_ => numbers($value->{$_}) } keys %$value } if ref $value eq 'HASH';
    return [ map { numbers($_) } @$value ] if ref $value eq 'ARRAY';
    return defined $value && $value =~ /^-?\d+$/ ? $value + 0 : $value;
}

$steps{header_types} = sub {
    my $ch    = Connection->new->channel;
    my $queue = $ch->own_queue;
    my $sent  = {
        text => 'plain', number => -2147483648, digits => Net::AMQP::Value::String->new('17'),
        time => Net::AMQP::Value::Timestamp->new(1700000000), yes => Net::AMQP::Value->true,
        no => Net::AMQP::Value->false, table => { deep => { deeper => 1 } }, empty => {},
        list => [ 1, 'two', [3], { four => 4 } ], nothing => [], large => 'y' x 70000,
    };
    $ch->publish($queue, '', properties => { headers => $sent });
    my $got = $ch->get($queue, no_ack => 1)->{properties}{headers};
    my %plain = (%$sent, digits => '17', time => 1700000000, yes => 1, no => 0);
    return [ numbers(\%plain), numbers($got) ];
};

$steps{bodies} = sub {
    my $ch    = Connection->new->channel;
    my $queue = $ch->own_queue;
    my @seen;
    for my $body (join('', map { chr } 0 .. 255) x (3 * 1024 * 1024 / 256), '') {
        $ch->publish($queue, $body);
        my $got = $ch->get($queue, no_ack => 1)->{body};
        push @seen, [ length $got, sha256_hex($got) ];
    }
    return \@seen;
};

$steps{returns} = sub {
    my $ch = Connection->new->channel;
    $ch->publish('nowhere', 'lost', mandatory => 1);
    my $returned = $ch->expect('basic.return');
    my $content  = $ch->{connection}->content;
    return [ $returned->reply_code + 0, $returned->reply_text, $returned->exchange, $returned->routing_key, $content->{body} ];
};

$steps{acks} = sub {
    my $ch    = Connection->new->channel;
    my $dead  = $ch->own_queue;
    my $queue = $ch->own_queue('x-dead-letter-exchange' => '', 'x-dead-letter-routing-key' => $dead);
    $ch->publish($queue, $_) for qw(one two three);
    $ch->ask('basic.qos', 'basic.qos-ok', prefetch_count => 1);
    my $tag = $ch->ask('basic.consume', 'basic.consume-ok', queue => $queue)->consumer_tag;
    my @seen;
    while (@seen < 4) {
        my $message = $ch->delivery;
        push @seen, [ $message->{body}, bool($message->{redelivered}) ];
        if    (@seen == 1)                { $ch->say('basic.reject', delivery_tag => $message->{delivery_tag}, requeue => 1) }
        elsif ($seen[-1][0] eq 'two')     { $ch->say('basic.reject', delivery_tag => $message->{delivery_tag}, requeue => 0) }
        else                              { $ch->say('basic.ack', delivery_tag => $message->{delivery_tag}) }
    }
    $ch->ask('basic.cancel', 'basic.cancel-ok', consumer_tag => $tag);
    return { deliveries => \@seen, dead => $ch->purge($dead) + 0, left => $ch->purge($queue) + 0 };
};

$steps{recover} = sub {
    my $ch    = Connection->new->channel;
    my $queue = $ch->own_queue;
    $ch->publish($queue, 'x');
    my $first = bool($ch->get($queue)->{redelivered});
    $ch->say('basic.recover', requeue => 1);
    # Answered in 0-9-1 only.
    $ch->expect('basic.recover-ok') unless $old;
    return [ $first, bool($ch->get($queue)->{redelivered}) ];
};

$steps{get} = sub {
    my $ch    = Connection->new->channel;
    my $queue = $ch->own_queue;
    my $empty = $ch->get($queue);
    $ch->publish($queue, $_) for qw(one two);
    my $full = $ch->get($queue, no_ack => 1);
    return { empty => $empty, full => [ $full->{body}, bool($full->{redelivered}), $full->{message_count} + 0 ] };
};

$steps{consume} = sub {
    my $ch    = Connection->new->channel;
    my $queue = $ch->own_queue;
    $ch->publish($queue, "m$_") for 0 .. 9;
    my $tag = $ch->ask('basic.consume', 'basic.consume-ok', queue => $queue, consumer_tag => 'reader')->consumer_tag;
    my @bodies;
    for (0 .. 9) {
        my $message = $ch->delivery;
        push @bodies, $message->{body};
        $ch->say('basic.ack', delivery_tag => $message->{delivery_tag});
    }
    $ch->ask('basic.cancel', 'basic.cancel-ok', consumer_tag => $tag);
    my $left = $ch->ask('queue.declare', 'queue.declare-ok', queue => $queue, passive => 1);
    return { tag => $tag, bodies => \@bodies, left => $left->message_count + $left->consumer_count };
};

$steps{qos} = sub {
    my $ch    = Connection->new->channel;
    my $queue = $ch->own_queue;
    $ch->publish($queue, "m$_") for 0 .. 4;
    $ch->ask('basic.qos', 'basic.qos-ok', prefetch_count => 2);
    $ch->ask('basic.consume', 'basic.consume-ok', queue => $queue);
    my @seen  = map { $ch->delivery } 1 .. 2;
    my $ready = $ch->ask('queue.declare', 'queue.declare-ok', queue => $queue, passive => 1)->message_count;
    $ch->say('basic.ack', delivery_tag => $seen[-1]{delivery_tag}, multiple => 1);
    push @seen, map { $ch->delivery } 1 .. 2;
    return { ready => $ready + 0, then => [ map { $_->{body} } @seen ] };
};

$steps{tx} = sub {
    my $ch    = Connection->new->channel;
    my $queue = $ch->own_queue;
    $ch->ask('tx.select', 'tx.select-ok');
    $ch->publish($queue, 'x');
    $ch->ask('tx.rollback', 'tx.rollback-ok');
    my $rolled_back = $ch->purge($queue);
    $ch->publish($queue, $_) for qw(y z);
    $ch->ask('tx.commit', 'tx.commit-ok');
    return { rolled_back => $rolled_back + 0, committed => $ch->purge($queue) + 0 };
};

$steps{access} = sub {
    my $ch     = Connection->new->channel;
    my $ticket = $ch->ask('access.request', 'access.request-ok', realm => '/data', active => 1, write => 1, read => 1)->ticket;
    my $queue  = $ch->ask('queue.declare', 'queue.declare-ok', ticket => $ticket, exclusive => 1)->queue;
    $ch->publish($queue, 'ticket', ticket => $ticket);
    return [ $ticket + 0, $ch->get($queue, ticket => $ticket, no_ack => 1)->{body} ];
};

$steps{errors} = sub {
    my $connection = Connection->new;
    $connection->channel->ask('queue.declare', 'queue.declare-ok', queue => 'errors', durable => 1);
    my @acts = (
        sub { $connection->channel->ask('queue.declare', 'queue.declare-ok', queue => 'nothing', passive => 1) },
        sub { $connection->channel->ask('queue.declare', 'queue.declare-ok', queue => 'errors') },
        sub { $connection->channel->ask('exchange.declare', 'exchange.declare-ok', exchange => 'amq.mine', type => 'direct') },
    );
    my %seen;
    for my $act (@acts) {
        my ($code, @rest) = @{ told($act) // [] };
        $seen{$code} = \@rest;
    }
    my $deleted = $connection->channel->ask('queue.delete', 'queue.delete-ok', queue => 'errors');
    return { %seen, usable => bool($deleted->message_count == 0) };
};

$steps{connection_error} = sub {
    my $ch    = Connection->new->channel;
    my $queue = $ch->own_queue;
    my $again = sub { $ch->ask('basic.consume', 'basic.consume-ok', queue => $queue, consumer_tag => 'reader') };
    $again->();
    return told($again);
};

$steps{unknown_vhost} = sub { told(sub { Connection->new(vhost => 'nowhere') }) };

$steps{wrong_password} = sub {
    eval { Connection->new(password => 'wrong'); 1 } and return undef;
    return ref $@ ? $@->{told} : $@ eq "the connection is gone\n" ? 'no word' : die $@;
};

$steps{operator_close} = sub {
    my $connection = Connection->new;
    ask('close');
    return told(sub { $connection->expect(0, 'nothing') });
};

$steps{close} = sub {
    my $connection = Connection->new;
    $connection->channel->ask('channel.close', 'channel.close-ok', reply_code => 200, reply_text => 'bye');
    return $connection->close;
};

# ---- habits that brokers have no patience with -------------------------------------------------------------

my $works = sub {
    my $connection = Connection->new(@_);
    my $ch    = $connection->channel;
    my $queue = $ch->own_queue;
    my $body  = 'x' x 200_000;
    $ch->publish($queue, $body);
    my $got = $ch->get($queue, no_ack => 1)->{body};
    $connection->close;
    return bool($got eq $body);
};

$steps{channel_max_0}   = sub { $works->(tune => [ 0, 131072 ]) };
$steps{frame_max_0}     = sub { $works->(tune => [ 2047, 0 ]) };
$steps{small_frame_max} = sub { $works->(tune => [ 2047, 4096 ]) };
$steps{empty_response}  = sub { $works->(empty => 1) };

$steps{flow} = sub {
    my $ch    = Connection->new->channel;
    my $queue = $ch->own_queue;
    $ch->ask('basic.consume', 'basic.consume-ok', queue => $queue);
    my $off = $ch->ask('channel.flow', 'channel.flow-ok', active => 0)->active;
    $ch->publish($queue, 'later');
    # So many requests are answered before a delivery that was to come counts as held back.
    $ch->ask('basic.qos', 'basic.qos-ok', prefetch_count => 10) for 1 .. 20;
    # What was held back may come before the answer.
    $ch->say('channel.flow', active => 1);
    my %seen = (off => bool($off), meanwhile => []);
    for (1 .. 2) {
        my $method = $ch->expect('channel.flow-ok', 'basic.deliver');
        if   ($method->can('active')) { $seen{on}   = bool($method->active) }
        else                          { $seen{then} = [ $ch->{connection}->content->{body} ] }
    }
    return \%seen;
};

$steps{foreign} = sub {
    my $ch = Connection->new->channel;
    $ch->ask('queue.declare', 'queue.declare-ok', queue => 'foreign');
    ask('foreign');
    my $message = $ch->get('foreign', no_ack => 1);
    return [ $message->{body}, [ sort keys %{ $message->{properties}{headers} } ] ];
};

for my $name (@ARGV) {
    print "step $name\n";
    my $seen;
    if (eval { $seen = $steps{$name}->(); 1 }) {
        print 'saw ', $json->encode($seen), "\n";
    } else {
        my $why = ref $@ ? $json->encode($@->{told}) : $@;
        chomp $why;
        print 'failed ', $json->encode($why), "\n";
    }
}
